// The program's command line. In: argv. Out: what the command promises, and an exit status: 0 done, 1 bad input or
// failure, 2 wrong usage, 3 a check that failed. Every failure is one message on standard error.
#define _GNU_SOURCE
#include "error.h"
#include "generate.h"
#include "io.h"
#include "options.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

volatile sig_atomic_t interrupted;
double main_started;

static void on_interrupt(int signal) {
    (void) signal;
    interrupted = 1; // between two forwards the work ends; a second Ctrl-C kills
}

static int print_usage(void) {
    int bad = out_print("%s (%s), a program made by %s\n\nusage: PROGRAM COMMAND [options]\n\n", model_info.name,
        model_info.arch, compiler_version);
    for (const Command *c = commands; c->name && !bad; c++) bad = out_print("  %-11s %s\n", c->name, c->does);
    return bad ? bad : out_print("\nPROGRAM COMMAND --help says more; --version names the program.\n");
}

static int dispatch(int argc, char **argv) {
    Options options;
    if (argc < 2) {
        complain("no command; see --help");
        return 2;
    }
    const char *name = argv[1];
    if (!strcmp(name, "--help") || !strcmp(name, "-h")) return print_usage();
    if (!strcmp(name, "--version"))
        return out_print("%s (%s), made by %s, model %016llx\n", model_info.name, model_info.arch, compiler_version,
            (unsigned long long) model_info.hash);
    const Command *command = command_named(name);
    if (!command) {
        complain("'%s' is no command; see --help", name);
        return 2;
    }
    int result = options_parse(&options, command, argc - 2, argv + 2);
    if (result) return result;
    if (options.help) return options_help(command);
    if (command->logits && strcmp(model_info.result, "logits"))
        return complain("%s works on logits, and this model gives '%s'; see embed", name, model_info.result);
    if (command->logits && model_info.whole && command->run != cmd_logits)
        return complain("%s goes from token to token, and this model reads a text as a whole; see logits", name);
    return command->run(&options);
}

int main(int argc, char **argv) {
    main_started = seconds_now();
    struct sigaction action = {.sa_handler = on_interrupt, .sa_flags = SA_RESETHAND};
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    signal(SIGPIPE, SIG_IGN); // a closed pipe is an error of the write,
    signal(SIGXFSZ, SIG_IGN); // and so is a file that may not grow further
    int result = dispatch(argc, argv);
    if (result != -1 && out_flush()) result = -1;
    if (result == 0) return 0;
    fprintf(stderr, "error: %s\n", complaint());
    return result == -1 ? 1 : result;
}
