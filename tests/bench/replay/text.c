#include "tests/bench/replay/text.h"

#include "base/check.h"
#include "base/hash.h"

/* 256 entries, so that a random byte picks a word. Spaces lead, as in the vocabularies of engines.
 * Escapes are about as frequent as in prompts with code. */
static const char WORDS[256][9] = {
    " the",    " of",     " to",     " and",    " in",     " is",     " it",     " for",
    " on",     " assert", " be",     " at",     " or",     " an",     " if",     " by",
    " we",     " so",     " no",     " up",     " do",     " method", " my",     " me",
    " us",     " out",    " all",    " new",    " one",    " two",    " get",    " set",
    " put",    " run",    " add",    " use",    " see",    " say",    " way",    " may",
    " day",    " can",    " has",    " had",    " not",    " but",    " was",    " are",
    " you",    " his",    " her",    " its",    " our",    " who",    " how",    " now",
    " old",    " any",    " few",    " off",    " own",    " too",    " let",    " try",
    " end",    " key",    " map",    " bit",    " log",    " tag",    " row",    " top",
    " low",    " red",    " big",    " far",    " yes",    " int",    " str",    " len",
    " buf",    " ptr",    " err",    " ret",    " arg",    " env",    " tmp",    " src",
    " dst",    " obj",    " idx",    " num",    " min",    " max",    " sum",    " avg",
    " url",    " uri",    " api",    " cpu",    " gpu",    " ram",    " sql",    " tcp",
    " udp",    " dns",    " tls",    " ssh",    " git",    " npm",    " pip",    " tests",
    " build",  " xml",    " csv",    " yml",    " bin",    " hex",    " utf",    " pid",
    " uid",    " given",  " fd",     " io",     " os",     " db",     " id",     " ok",
    " which",  " about",  " there",  " their",  " this",   " that",   " with",   " from",
    " have",   " will",   " what",   " when",   " then",   " than",   " them",   " some",
    " time",   " code",   " file",   " line",   " test",   " call",   " type",   " list",
    " name",   " data",   " node",   " path",   " read",   " send",   " open",   " free",
    " loop",   " case",   " else",   " true",   " null",   " void",   " char",   " long",
    " size",   " body",   " head",   " byte",   " word",   " text",   " task",   " plan",
    " fix",    " bug",    " why",    " ask",    " top",    " cut",    " hit",    " hot",
    " cap",    " sub",    " mod",    " div",    " mul",    " error",  " check",  " value",
    " index",  " table",  " cache",  " queue",  " write",  " const",  " while",  " module",
    " import", " export", " method", " schema", " commit", " linker", " branch", " assert",
    " Please", " server", " client", " prompt", " return", " struct", " static", " string",
    " number", " thread", " buffer", " 0",      " 1",      " 2",      " would",  " could",
    " should", " =",      " ==",     " +",      " -",      " *",      " /",      " {",
    " }",      " (",      " )",      " ->",     " &&",     " ||",     " <",      " >",
    ";",       ",",       "\\nif",   "\\n  ",   "\\n//",   "\\n-",    "\\n#",    "\\n",
    "\\n  ",   " \\\"",   "\\\"",    " false",  ".",       ":",       " 7",      " break",
};

void text_append(struct buf *out, uint64_t seed, size_t words)
{
    static uint8_t length[256];
    if (length[0] == 0)
        for (size_t i = 0; i < 256; i++)
            length[i] = (uint8_t)strlen(WORDS[i]);
    CHECK(buf_reserve(out, words * 8 + 8) == 0);
    char *at = out->at + out->len;
    uint64_t counter = hash_mix(seed ^ 0x9e3779b97f4a7c15u);
    while (words > 0) {
        counter += 0x9e3779b97f4a7c15u;
        uint64_t bits = hash_mix(counter);
        for (size_t i = 0; i < 8 && words > 0; i++, words--, bits >>= 8) {
            memcpy(at, WORDS[bits & 255], 8); /* always 8 bytes: faster than the length */
            at += length[bits & 255];
        }
    }
    out->len = (size_t)(at - out->at);
}

void text_escape(struct buf *out, struct slice raw)
{
    CHECK(buf_reserve(out, raw.len * 6) == 0);
    char *at = out->at + out->len;
    for (size_t i = 0; i < raw.len; i++) {
        unsigned char c = (unsigned char)raw.at[i];
        if (c == '"' || c == '\\') {
            *at++ = '\\';
            *at++ = (char)c;
        } else if (c == '\n') {
            *at++ = '\\';
            *at++ = 'n';
        } else if (c < 0x20) {
            static const char HEX[] = "0123456789abcdef";
            const char escape[6] = {'\\', 'u', '0', '0', HEX[c >> 4], HEX[c & 15]};
            memcpy(at, escape, sizeof escape);
            at += sizeof escape;
        } else {
            *at++ = (char)c;
        }
    }
    out->len = (size_t)(at - out->at);
}
