// The fixed conversations, and what is kept of a rendering. See chat_cases.h.
#include "chat_cases.h"

#include <string.h>

#define USER(text) "{\"role\": \"user\", \"content\": \"" text "\"}"
#define ANSWER(text) "{\"role\": \"assistant\", \"content\": \"" text "\"}"
#define SYSTEM(text) "{\"role\": \"system\", \"content\": \"" text "\"}"
#define CASE(messages, more) "{\"messages\": [" messages "], \"tools\": null, \"documents\": null, " more "}"
#define GO_ON "\"add_generation_prompt\": true"
#define NO_MORE "\"add_generation_prompt\": false"
#define WEATHER                                                                                                        \
    "{\"type\": \"function\", \"function\": {\"name\": \"weather\", \"description\": \"Weather of a place\", "         \
    "\"parameters\": {\"type\": \"object\", \"properties\": {\"place\": {\"type\": \"string\"}}, "                     \
    "\"required\": [\"place\"]}}}"

const char *const chat_cases[CHAT_CASES] = {
    CASE(USER("Hello."), GO_ON),
    CASE(SYSTEM("Be brief.") ", " USER("What is 2 + 2?"), GO_ON),
    CASE(USER("One") ", " ANSWER("Two") ", " USER("Three"), GO_ON),
    CASE(SYSTEM("  Be kind.\\n") ", " USER(" a\\n\\nb ") ", " ANSWER("<think>\\nhm\\n</think>\\n\\nyes") ", " USER(
             "\\u00e9\\u4f60\\ud83d\\ude00 <b>&\\\"'") ", " ANSWER(" end\\n"),
        NO_MORE),
    CASE(USER("Think."), GO_ON ", \"enable_thinking\": false"),
    CASE(USER("Weather?"), GO_ON ", \"enable_thinking\": true, \"tools\": [" WEATHER "]"),
    CASE(USER("Weather?") ", {\"role\": \"assistant\", \"content\": \"\", \"tool_calls\": [{\"id\": \"call00001\", "
                          "\"type\": \"function\", \"function\": {\"name\": \"weather\", \"arguments\": {\"place\": "
                          "\"Oslo\"}}}]}, "
                          "{\"role\": \"tool\", \"tool_call_id\": \"call00001\", \"name\": \"weather\", \"content\": "
                          "\"rain, 4.5\"}",
        GO_ON ", \"tools\": [" WEATHER "]"),
    CASE("{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": \"parts\"}]}", GO_ON),
    CASE(USER("a") ", {\"role\": \"assistant\", \"reasoning_content\": \"because\", \"content\": \"b\"}, " USER("c"),
        GO_ON),
};

int chat_case_open(Render *r, void *memory, size_t size, int which, const char *bos, const char *eos) {
    render_open(r, memory, size, (TemplateTime){2026, 7, 26, 9, 5, 3, 0});
    r->most_steps = CHAT_CASE_STEPS;
    if (render_vars(r, chat_cases[which], strlen(chat_cases[which])) < 0) return -1;
    if (bos && render_set(r, "bos_token", bos) < 0) return -1;
    return eos ? render_set(r, "eos_token", eos) : 0;
}

ChatCheck chat_case_result(const Render *r, int status) {
    const char *p = status < 0 ? r->error : r->text;
    size_t n = status < 0 ? strlen(r->error) : r->n_text;
    uint64_t hash = 0xcbf29ce484222325u;
    for (size_t i = 0; i < n; i++) hash = (hash ^ (unsigned char) p[i]) * 0x100000001B3u;
    return (ChatCheck){hash, (uint32_t) n, status < 0};
}
