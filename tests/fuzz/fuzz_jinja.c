// Any bytes as a chat template: it is refused with one message, or it compiles; then it renders or fails with one
// message, within its bounds, and prints as C.
#include "jinja.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char input[] = "{\"messages\":[{\"role\":\"user\",\"content\":\"Hi\"},{\"role\":\"assistant\",\"content\":"
                            "\"\\u00e9 <b>\",\"n\":[1,2.5,1e30,null,true]}],"
                            "\"add_generation_prompt\":true,\"s\":\"a "
                            "b\",\"n\":3,\"x\":0.5,\"d\":{\"a\":1,\"b\":[]},\"big\":123456789012345678901234567890}";

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    enum { memory_size = 4 << 20 };
    static char *memory;
    static Render r;
    if (!memory) memory = malloc(memory_size);
    if (size > 20000) return 0;
    Arena *volatile a = arena_new();
    if (!setjmp(fail_guard()->jmp)) {
        Jinja *t = jinja_compile(a, "fuzz", (Str){(const char *) data, size});
        render_open(&r, memory, memory_size, (TemplateTime){2026, 7, 26, 9, 5, 3, 0});
        if (render_vars(&r, input, sizeof input - 1) < 0) abort();
        r.most_steps = 20000;
        if (jinja_render(t, &r) < 0 && !r.error[0] && !r.raised) abort();
        Out o = out_new(a);
        jinja_emit(&o, t, "fuzz");
        if (!out_text(&o).n) abort();
    } else if (!fail_guard()->message[0]) {
        abort();
    }
    fail_unguard();
    arena_free(a);
    return 0;
}
