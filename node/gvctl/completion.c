#include "node/gvctl/completion.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/check.h"
#include "node/gvctl/command.h"
#include "node/settings/options.h"

enum { EXIT_USAGE = 2 };

/* What completes an argument, for all three shells. */
enum kind {
    KIND_NONE, /* nothing that is known here */
    KIND_FILE,
    KIND_VALUES,   /* words of the table */
    KIND_REPLICAS, /* asked of the router */
    KIND_HASHES,   /* the same, of poison */
    KIND_COMMANDS,
};

static enum kind kind_of_argument(const struct command *c, const char **values)
{
    *values = "";
    if (strcmp(c->name, "completion") == 0)
        *values = "bash zsh fish";
    if (strcmp(c->name, "log-level") == 0)
        *values = "error warn info debug";
    if (strcmp(c->name, "key") == 0)
        *values = "new";
    if ((*values)[0] != '\0')
        return KIND_VALUES;
    if (strcmp(c->name, "help") == 0)
        return KIND_COMMANDS;
    if (strstr(c->argument, "HOST:PORT") != NULL)
        return strcmp(c->name, "add") == 0 ? KIND_NONE : KIND_REPLICAS;
    if (strstr(c->argument, "HASH") != NULL)
        return KIND_HASHES;
    return strstr(c->argument, "FILE") != NULL ? KIND_FILE : KIND_NONE;
}

static enum kind kind_of_option(const struct command_option *o, const char **values)
{
    *values = o->values != NULL ? o->values : "";
    if (o->argument == NULL || (o->values != NULL && o->values[0] == '\0'))
        return KIND_NONE;
    return o->values == NULL ? KIND_FILE : KIND_VALUES;
}

/* The words that a setting may have, by blanks; false: any. */
static bool values_of_setting(const struct node_option *row, char *out, size_t size)
{
    out[0] = '\0';
    if (row->type == NODE_TYPE_BOOL)
        (void)snprintf(out, size, "on off");
    for (const char *const *c = row->type == NODE_TYPE_CHOICE ? row->choices() : NULL;
         c != NULL && *c != NULL; c++) {
        size_t len = strlen(out);
        (void)snprintf(out + len, size - len, "%s%s", len > 0 ? " " : "", *c);
    }
    return out[0] != '\0';
}

/* An option without which the router is not reached: it counts when that is asked for names. */
static bool is_way(const struct command_option *o)
{
    static const char *const names[] = {"admin", "config", "ca-file", "insecure", "token-file"};
    bool way = false;
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        way |= o->of == (unsigned)OF_EVERY && strcmp(o->name, names[i]) == 0;
    return way;
}

/* The names of them, with an argument or without; `end` stands behind each. */
static void ways(bool argument, const char *end, const char *between, FILE *to)
{
    const struct command_option *o;
    bool any = false;
    for (unsigned i = 0; (o = command_option_at(i)) != NULL; i++) {
        if (!is_way(o) || (o->argument != NULL) != argument)
            continue;
        (void)fprintf(to, "%s--%s%s", any ? between : "", o->name, end);
        any = true;
    }
}

static bool is_path(const struct node_option *row)
{
    return row->type == NODE_TYPE_PATH || strcmp(row->unit, "FILE") == 0;
}

static const struct {
    const char *name, *help;
} grapevine_commands[] = {{"help", "this text"},
                          {"version", "print the version"},
                          {"check-config", "print the effective settings and their origins"}};

/* --- bash ------------------------------------------------------------------------------------ */

/* compgen -W splits at blanks; a replica's name has colons, at which bash breaks words. */
static const char bash_head[] = "# bash completion of gvctl, made by `gvctl completion bash`\n"
                                "_gvctl_ask() { # what the router knows, reached as the line says\n"
                                "    local i way=()\n"
                                "    for ((i = 1; i < ${#words[@]} - 1; i++)); do\n"
                                "        case ${words[i]} in\n";

static const char bash_asked[] =
    "        esac\n"
    "    done\n"
    "    gvctl \"${way[@]}\" --timeout 2 -o name \"$1\" 2>/dev/null\n"
    "}\n"
    "_gvctl() {\n"
    "    local cur prev words=() cword line=${COMP_LINE:0:COMP_POINT} command= i take= place=0\n"
    "    read -ra words <<<\"$line\"\n"
    "    [[ $line == *[[:space:]] ]] && words+=(\"\")\n"
    "    cword=$((${#words[@]} - 1)) cur=${words[${#words[@]} - 1]} prev=${words[cword - 1]}\n"
    "    for ((i = 1; i < cword; i++)); do\n"
    "        if [[ -n $take ]]; then take=; continue; fi\n"
    "        case ${words[i]} in\n";

static const char bash_tail[] =
    "    esac\n"
    "    # bash has put into the word only what stands behind its last colon\n"
    "    if [[ $cur == *:* && $COMP_WORDBREAKS == *:* ]]; then\n"
    "        for i in \"${!COMPREPLY[@]}\"; do\n"
    "            COMPREPLY[i]=${COMPREPLY[i]#\"${cur%\"${cur##*:}\"}\"}\n"
    "        done\n"
    "    fi\n"
    "}\n"
    "complete -F _gvctl gvctl\n";

static void bash_kind(enum kind kind, const char *values, FILE *to)
{
    switch (kind) {
    case KIND_FILE:
        (void)fputs("COMPREPLY=($(compgen -f -- \"$cur\"))", to);
        break;
    case KIND_VALUES:
        (void)fprintf(to, "COMPREPLY=($(compgen -W '%s' -- \"$cur\"))", values);
        break;
    case KIND_REPLICAS:
    case KIND_HASHES:
        (void)fprintf(to, "COMPREPLY=($(compgen -W \"$(_gvctl_ask %s)\" -- \"$cur\"))",
                      kind == KIND_HASHES ? "poison" : "replicas");
        break;
    case KIND_COMMANDS:
        (void)fputs("COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\"))", to);
        break;
    default:
        (void)fputs(":", to);
    }
}

static void bash_options(const struct command *c, FILE *to)
{
    const struct command_option *o;
    (void)fputs("\"$common", to);
    for (unsigned i = 0; (o = command_option_at(i)) != NULL; i++) {
        if (o->of != (unsigned)OF_EVERY && (o->of & c->options) != 0)
            (void)fprintf(to, " --%s", o->name);
    }
    (void)fputs("\"", to);
}

static void bash_gvctl(FILE *to)
{
    const struct command *c;
    const struct command_option *o;
    const char *values = "";
    (void)fputs(bash_head, to);
    (void)fputs("        ", to);
    ways(true, "", " | ", to);
    (void)fputs(") way+=(\"${words[i]}\" \"${words[++i]/#\\~\\//$HOME/}\") ;;\n        ", to);
    ways(true, "=*", " | ", to);
    (void)fputs(" | ", to);
    ways(false, "", " | ", to);
    (void)fputs(") way+=(\"${words[i]}\") ;;\n", to);
    (void)fputs(bash_asked, to);
    for (unsigned i = 0; (o = command_option_at(i)) != NULL; i++) {
        if (o->argument != NULL)
            (void)fprintf(to, "        --%s) take=1 ;;\n", o->name);
    }
    (void)fputs(
        "        -o) take=1 ;;\n        -*) ;;\n"
        "        *) if [[ -z $command ]]; then command=${words[i]}; else ((++place)); fi ;;\n"
        "        esac\n"
        "    done\n    local commands='",
        to);
    for (unsigned i = 0; (c = command_at(i)) != NULL; i++)
        (void)fprintf(to, "%s%s", i > 0 ? " " : "", c->name);
    (void)fputs("' common='", to);
    for (unsigned i = 0; (o = command_option_at(i)) != NULL; i++) {
        if (o->of == (unsigned)OF_EVERY)
            (void)fprintf(to, "%s--%s", i > 0 ? " " : "", o->name);
    }
    (void)fputs("'\n    COMPREPLY=()\n    case $prev in\n", to);
    for (unsigned i = 0; (o = command_option_at(i)) != NULL; i++) {
        if (o->argument == NULL)
            continue;
        (void)fprintf(to, "    %s--%s) ", o->is_short ? "-o | " : "", o->name);
        enum kind kind = kind_of_option(o, &values);
        bash_kind(kind, values, to);
        (void)fputs("; return ;;\n", to);
    }
    (void)fputs("    esac\n    case $command:$cur in\n"
                "    :-*) COMPREPLY=($(compgen -W \"$common\" -- \"$cur\")) ;;\n"
                "    :*) COMPREPLY=($(compgen -W \"$commands\" -- \"$cur\")) ;;\n",
                to);
    for (unsigned i = 0; (c = command_at(i)) != NULL; i++) {
        (void)fprintf(to, "    %s:-*) COMPREPLY=($(compgen -W ", c->name);
        bash_options(c, to);
        (void)fprintf(to, " -- \"$cur\")) ;;\n    %s:*) ", c->name);
        enum kind kind = kind_of_argument(c, &values);
        if (kind != KIND_FILE && kind != KIND_NONE)
            (void)fputs("((place > 0)) || ", to);
        bash_kind(kind, values, to);
        (void)fputs(" ;;\n", to);
    }
    (void)fputs(bash_tail, to);
}

static void bash_grapevine(FILE *to)
{
    unsigned count;
    const struct node_option *rows = node_option_table(&count);
    char values[512];
    (void)fputs("# bash completion of grapevine, made by `gvctl completion bash --for grapevine`\n"
                "_grapevine() {\n"
                "    local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
                "    if [[ $cur == = ]]; then cur=\n"
                "    elif [[ $prev == = ]]; then prev=${COMP_WORDS[COMP_CWORD - 2]}; fi\n"
                "    COMPREPLY=()\n"
                "    case $prev in\n",
                to);
    for (unsigned i = 0; i < count; i++) {
        bool words = values_of_setting(&rows[i], values, sizeof values);
        (void)fprintf(to, "    --%s) ", rows[i].name);
        bash_kind(words ? KIND_VALUES : is_path(&rows[i]) ? KIND_FILE : KIND_NONE, values, to);
        (void)fputs("; return ;;\n", to);
    }
    (void)fputs("    esac\n    COMPREPLY=($(compgen -W '", to);
    for (size_t i = 0; i < ARRAY_LEN(grapevine_commands); i++)
        (void)fprintf(to, "--%s ", grapevine_commands[i].name);
    for (unsigned i = 0; i < count; i++)
        (void)fprintf(to, "--%s ", rows[i].name);
    (void)fputs("' -- \"$cur\"))\n}\ncomplete -F _grapevine grapevine\n", to);
}

/* --- zsh ------------------------------------------------------------------------------------- */

/* Text in single quotes, in which _arguments takes brackets and colons for its own. */
static void zsh_text(const char *text, FILE *to)
{
    for (; *text != '\0'; text++) {
        if (*text == '\'')
            (void)fputs("'\\''", to);
        else
            (void)fprintf(to, "%s%c", strchr("[]:\\", *text) != NULL ? "\\" : "", *text);
    }
}

static void zsh_kind(enum kind kind, const char *values, FILE *to)
{
    switch (kind) {
    case KIND_FILE:
        (void)fputs("_files", to);
        break;
    case KIND_VALUES:
        (void)fprintf(to, "(%s)", values);
        break;
    case KIND_REPLICAS:
    case KIND_HASHES:
        (void)fprintf(to, "_gvctl_ask %s", kind == KIND_HASHES ? "poison" : "replicas");
        break;
    case KIND_COMMANDS:
        (void)fputs("_gvctl_commands", to);
        break;
    default:
        (void)fputs(" ", to);
    }
}

static void zsh_option(const char *name, const char *help, const char *argument, enum kind kind,
                       const char *values, FILE *to)
{
    (void)fprintf(to, " \\\n        '%s%s%s[", argument != NULL ? "*" : "", name,
                  argument != NULL && name[1] == '-' ? "=" : "");
    zsh_text(help, to);
    (void)fputs("]", to);
    if (argument != NULL) {
        (void)fputs(":", to);
        zsh_text(argument, to);
        (void)fputs(":", to);
        zsh_kind(kind, values, to);
    }
    (void)fputs("'", to);
}

static void zsh_options(unsigned of, bool common, FILE *to)
{
    const struct command_option *o;
    const char *values = "";
    for (unsigned i = 0; (o = command_option_at(i)) != NULL; i++) {
        if ((o->of == (unsigned)OF_EVERY) != common || (o->of & of) == 0)
            continue;
        char name[64];
        enum kind kind = kind_of_option(o, &values);
        (void)snprintf(name, sizeof name, "--%s", o->name);
        zsh_option(name, o->help, o->argument, kind, values, to);
        (void)snprintf(name, sizeof name, "-%c", o->letter);
        if (o->is_short)
            zsh_option(name, o->help, o->argument, kind, values, to);
    }
}

static void zsh_gvctl(FILE *to)
{
    const struct command *c;
    const char *values = "";
    (void)fputs("#compdef gvctl\n"
                "# zsh completion of gvctl, made by `gvctl completion zsh`\n"
                "_gvctl_ask() { # what the router knows, reached as the line says\n"
                "    # _arguments puts options of compadd before the command that is asked\n"
                "    local -a names way\n    local i\n"
                "    for ((i = 2; i < $#line_words; i++)); do\n"
                "        case $line_words[i] in\n        ",
                to);
    ways(true, "", "|", to);
    (void)fputs(") way+=($line_words[i] ${${(Q)line_words[++i]}/#\\~\\//$HOME/}) ;;\n        ", to);
    ways(true, "=*", "|", to);
    (void)fputs("|", to);
    ways(false, "", "|", to);
    (void)fputs(") way+=(${(Q)line_words[i]}) ;;\n        esac\n    done\n"
                "    names=(${(f)\"$(gvctl $way --timeout 2 -o name ${@[-1]} 2>/dev/null)\"})\n"
                "    compadd \"${@[1,-2]}\" -a names\n"
                "}\n"
                "_gvctl_commands() {\n    local -a commands\n    commands=(\n",
                to);
    for (unsigned i = 0; (c = command_at(i)) != NULL; i++) {
        (void)fprintf(to, "        '%s:", c->name);
        zsh_text(c->help, to);
        (void)fputs("'\n", to);
    }
    (void)fputs("    )\n    _describe command commands\n}\n"
                "_gvctl() {\n    local state line\n    typeset -A opt_args\n"
                "    local -a line_words\n    line_words=(\"${words[@]}\")\n"
                "    local -a common\n    common=(",
                to);
    zsh_options((unsigned)OF_EVERY, true, to);
    (void)fputs(")\n    _arguments -C $common ': :_gvctl_commands' '*:: :->argument'\n"
                "    [[ $state == argument ]] || return\n    case $words[1] in\n",
                to);
    for (unsigned i = 0; (c = command_at(i)) != NULL; i++) {
        enum kind kind = kind_of_argument(c, &values);
        (void)fprintf(to, "    %s) _arguments $common", c->name);
        zsh_options(c->options, false, to);
        if (kind != KIND_NONE) {
            (void)fprintf(to, " '1:%s:", kind == KIND_COMMANDS ? "command" : "argument");
            zsh_kind(kind, values, to);
            (void)fputs("'", to);
        }
        (void)fputs(" ;;\n", to);
    }
    (void)fputs("    esac\n}\n"
                "if [[ $funcstack[1] == _gvctl ]]; then _gvctl \"$@\"; else compdef _gvctl gvctl; "
                "fi\n",
                to);
}

static void zsh_grapevine(FILE *to)
{
    unsigned count;
    const struct node_option *rows = node_option_table(&count);
    char values[512], name[64];
    (void)fputs("#compdef grapevine\n"
                "# zsh completion of grapevine, made by `gvctl completion zsh --for grapevine`\n"
                "_grapevine() {\n    _arguments",
                to);
    for (size_t i = 0; i < ARRAY_LEN(grapevine_commands); i++) {
        (void)snprintf(name, sizeof name, "--%s", grapevine_commands[i].name);
        zsh_option(name, grapevine_commands[i].help, NULL, KIND_NONE, "", to);
    }
    for (unsigned i = 0; i < count; i++) {
        bool words = values_of_setting(&rows[i], values, sizeof values);
        (void)snprintf(name, sizeof name, "--%s", rows[i].name);
        zsh_option(name, rows[i].help, rows[i].unit,
                   words               ? KIND_VALUES
                   : is_path(&rows[i]) ? KIND_FILE
                                       : KIND_NONE,
                   values, to);
    }
    (void)fputs("\n}\nif [[ $funcstack[1] == _grapevine ]]; then _grapevine \"$@\"; else "
                "compdef _grapevine grapevine; fi\n",
                to);
}

/* --- fish ------------------------------------------------------------------------------------ */

static void fish_text(const char *text, FILE *to)
{
    (void)fputc('\'', to);
    for (; *text != '\0'; text++)
        (void)fprintf(to, "%s%c", *text == '\'' || *text == '\\' ? "\\" : "", *text);
    (void)fputc('\'', to);
}

static void fish_kind(enum kind kind, const char *values, FILE *to)
{
    if (kind == KIND_FILE)
        (void)fputs(" -rF", to);
    else if (kind == KIND_VALUES)
        (void)fprintf(to, " -xa '%s'", values);
    else if (kind == KIND_REPLICAS || kind == KIND_HASHES)
        (void)fprintf(to, " -xa '(gvctl (__gvctl_way) --timeout 2 -o name %s 2>/dev/null)'",
                      kind == KIND_HASHES ? "poison" : "replicas");
    else
        (void)fputs(" -x", to);
}

static void fish_option(const struct command_option *o, const char *condition, FILE *to)
{
    const char *values = "";
    (void)fputs("complete -c gvctl", to);
    if (condition != NULL)
        (void)fprintf(to, " -n '__fish_seen_subcommand_from %s'", condition);
    (void)fprintf(to, " -l %s", o->name);
    if (o->is_short)
        (void)fprintf(to, " -s %c", o->letter);
    (void)fputs(" -d ", to);
    fish_text(o->help, to);
    enum kind kind = kind_of_option(o, &values);
    if (o->argument != NULL)
        fish_kind(kind, values, to);
    (void)fputc('\n', to);
}

static void fish_gvctl(FILE *to)
{
    const struct command *c;
    const struct command_option *o;
    const char *values = "";
    (void)fputs("# fish completion of gvctl, made by `gvctl completion fish`\n"
                "function __gvctl_way # how the router is reached, as the line says\n"
                "    set -l take\n"
                "    for word in (commandline -opc)\n"
                "        if set -q take[1]\n"
                "            string replace -r '^~/' \"$HOME/\" -- $word\n"
                "            set -e take[1]\n"
                "            continue\n"
                "        end\n"
                "        switch $word\n"
                "            case ",
                to);
    ways(true, "", " ", to);
    (void)fputs(
        "\n                printf '%s\\n' $word\n                set take 1\n            case '",
        to);
    ways(true, "=*", "' '", to);
    (void)fputs("' ", to);
    ways(false, "", " ", to);
    (void)fputs("\n                printf '%s\\n' $word\n        end\n    end\nend\n"
                "complete -c gvctl -f\n",
                to);
    for (unsigned i = 0; (o = command_option_at(i)) != NULL; i++) {
        if (o->of == (unsigned)OF_EVERY)
            fish_option(o, NULL, to);
    }
    for (unsigned i = 0; (c = command_at(i)) != NULL; i++) {
        (void)fprintf(to, "complete -c gvctl -n __fish_use_subcommand -a %s -d ", c->name);
        fish_text(c->help, to);
        (void)fputc('\n', to);
        for (unsigned j = 0; (o = command_option_at(j)) != NULL; j++) {
            if (o->of != (unsigned)OF_EVERY && (o->of & c->options) != 0)
                fish_option(o, c->name, to);
        }
        enum kind kind = kind_of_argument(c, &values);
        if (kind == KIND_NONE)
            continue;
        (void)fprintf(to, "complete -c gvctl -n '__fish_seen_subcommand_from %s", c->name);
        if (kind == KIND_VALUES) /* it takes one of them */
            (void)fprintf(to, "; and not __fish_seen_subcommand_from %s", values);
        (void)fputs("'", to);
        if (kind == KIND_COMMANDS) {
            const struct command *other;
            (void)fputs(" -xa '", to);
            for (unsigned j = 0; (other = command_at(j)) != NULL; j++)
                (void)fprintf(to, "%s ", other->name);
            (void)fputs("'", to);
        } else {
            fish_kind(kind, values, to);
        }
        (void)fputc('\n', to);
    }
}

static void fish_grapevine(FILE *to)
{
    unsigned count;
    const struct node_option *rows = node_option_table(&count);
    char values[512];
    (void)fputs("# fish completion of grapevine, made by `gvctl completion fish --for grapevine`\n"
                "complete -c grapevine -f\n",
                to);
    for (size_t i = 0; i < ARRAY_LEN(grapevine_commands); i++) {
        (void)fprintf(to, "complete -c grapevine -l %s -d ", grapevine_commands[i].name);
        fish_text(grapevine_commands[i].help, to);
        (void)fputc('\n', to);
    }
    for (unsigned i = 0; i < count; i++) {
        bool words = values_of_setting(&rows[i], values, sizeof values);
        (void)fprintf(to, "complete -c grapevine -l %s -d ", rows[i].name);
        fish_text(rows[i].help, to);
        fish_kind(words ? KIND_VALUES : is_path(&rows[i]) ? KIND_FILE : KIND_NONE, values, to);
        (void)fputc('\n', to);
    }
}

int completion(const char *shell, const char *program, FILE *to)
{
    static const struct {
        const char *shell, *program;
        void (*print)(FILE *to);
    } scripts[] = {{"bash", "gvctl", bash_gvctl}, {"bash", "grapevine", bash_grapevine},
                   {"zsh", "gvctl", zsh_gvctl},   {"zsh", "grapevine", zsh_grapevine},
                   {"fish", "gvctl", fish_gvctl}, {"fish", "grapevine", fish_grapevine}};
    for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
        if (strcmp(shell, scripts[i].shell) == 0 && strcmp(program, scripts[i].program) == 0) {
            scripts[i].print(to);
            return EXIT_SUCCESS;
        }
    }
    (void)fprintf(stderr,
                  "gvctl: no completion of \"%s\" for \"%s\": gvctl or grapevine, for bash, zsh or "
                  "fish\n",
                  program, shell);
    return EXIT_USAGE;
}
