// The command chat, for programs with a chat template and for those without. In: options. Out: a conversation.
#include "chat.h"
#include "error.h"

int cmd_chat(const Options *o) {
    if (!chat)
        return complain("this program has no chat template: the model's file had none, or it was left out; build it "
                        "with --chat-template FILE");
    return chat->talk(o);
}
