// One pass on the text of a graph. In: the pass's name and a file. Out: the graph after it, as text, and what the pass
// reported.
#include "../../compiler/passes.h"

#include <string.h>

// The tests' target: whatever is not F32 is packed and takes rounded inputs.
static bool wants_q8(const void *target, const Weight *w) {
    (void) target;
    return w->type != 0 && w->in % 32 == 0;
}

int main(int argc, char **argv) {
    if (argc != 3) fail_usage("passes_tool PASS FILE");
    Arena *a = arena_new();
    Graph *g = graph_read(a, argv[2], file_read(a, argv[2]));
    graph_check(g, false);
    Report r = {.arena = a};
    PassOptions opt = {.wants_q8 = wants_q8};
    const char *pass = argv[1];
    if (!strcmp(pass, "simplify")) simplify(g, &r);
    else if (!strcmp(pass, "tail_rows")) tail_rows(g, &r);
    else if (!strcmp(pass, "merge_products")) merge_products(g, &r);
    else if (!strcmp(pass, "quantise_inputs")) quantise_inputs(g, &r, &opt);
    else if (!strcmp(pass, "inline_decay")) inline_decay(g, &r);
    else if (!strcmp(pass, "fuse")) fuse(g, &r, &opt);
    else fail_usage("no pass %s", pass);
    graph_check(g, !strcmp(pass, "fuse"));
    Out o = out_new(a);
    graph_print(g, &o);
    if (r.n) out(&o, "\n");
    for (int i = 0; i < r.n; i++) {
        const ReportLine *l = &r.line[i];
        out(&o, "# %s %.*s: %.*s%s%.*s\n", l->reason.n ? "refused" : "done", FMT(l->stage), FMT(l->what),
            l->reason.n ? ": " : "", FMT(l->reason));
    }
    fwrite(o.p, 1, o.n, stdout);
    return fflush(stdout) != 0;
}
