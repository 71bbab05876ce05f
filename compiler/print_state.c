// Prints the heavy kernels that keep or read state other than attention: shift, recur, pick, pool. In: a kernel of the plan. Out:
// an instance of its template, its fixed arguments, how many pieces it has.
#include "emit.h"
#include "template.h"

KernelText print_state(const Plan *p, const Kernel *k) {
    const Node *n = &p->graph->stage[k->stage].node[p->graph->stage[k->stage].kernel[k->group].heavy];
    fail_at(n->loc, "%s is not compiled yet", op_info[n->op].name);
}
