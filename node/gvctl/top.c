#include "node/gvctl/run.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "node/gvctl/call.h"
#include "node/gvctl/top_frame.h"

static volatile sig_atomic_t ended, resized;

static void on_signal(int number)
{
    if (number == SIGWINCH)
        resized = 1;
    else
        ended = 1;
}

/* --- the terminal ---------------------------------------------------------------------------- */

static struct termios before_us;
static bool keys; /* standard input is a terminal: each key arrives at once, without echo */

static void open_screen(void)
{
    struct sigaction act = {.sa_handler = on_signal}; /* no restart: poll() must be interrupted */
    (void)sigaction(SIGINT, &act, NULL);
    (void)sigaction(SIGTERM, &act, NULL);
    (void)sigaction(SIGHUP, &act, NULL);
    (void)sigaction(SIGWINCH, &act, NULL);
    keys = tcgetattr(STDIN_FILENO, &before_us) == 0;
    struct termios raw = before_us;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
    raw.c_cc[VSUSP] = _POSIX_VDISABLE;
    if (keys)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &raw);
    (void)fputs("\033[?1049h\033[?25l", stdout); /* the alternate screen, without a cursor */
}

static void close_screen(void)
{
    (void)fputs("\033[?25h\033[?1049l", stdout);
    (void)fflush(stdout);
    if (keys)
        (void)tcsetattr(STDIN_FILENO, TCSANOW, &before_us);
}

/* Writes as much of a line as fits; escape sequences take no room. */
static void write_line(const char *line, size_t len, unsigned width)
{
    unsigned column = 0;
    for (size_t i = 0; i < len; i++) {
        if (line[i] == '\033') {
            while (i < len && line[i] != 'm')
                (void)putchar(line[i++]);
            (void)putchar('m');
            continue;
        }
        bool begins = ((unsigned char)line[i] & 0xc0) != 0x80;
        column += begins ? 1 : 0;
        if (column <= width)
            (void)putchar(line[i]);
    }
    (void)fputs("\033[0m\033[K", stdout);
}

/* Draws the frame over the last frame, as much as fits the window. */
static void draw(const char *text)
{
    struct winsize size = {.ws_row = 24, .ws_col = 80};
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || size.ws_row == 0 || size.ws_col == 0)
        size = (struct winsize){.ws_row = 24, .ws_col = 80};
    (void)fputs("\033[H", stdout);
    for (unsigned row = 0; row < size.ws_row; row++) {
        size_t len = strcspn(text, "\n");
        if (row + 1 == size.ws_row)
            write_line("q quits", 7, size.ws_col);
        else
            write_line(text, len, size.ws_col);
        text += text[len] == '\n' ? len + 1 : len;
        (void)fputs(row + 1 < size.ws_row ? "\r\n" : "", stdout);
    }
    (void)fflush(stdout);
}

/* Waits until `time`, and draws the frame again if the window changes its size. Returns false if
 * the user or a signal ends the program. */
static bool wait_until(double time, const char *frame)
{
    while (ended == 0) {
        double left = time - call_seconds();
        if (resized != 0) {
            resized = 0;
            draw(frame);
        }
        if (left <= 0)
            return true;
        struct pollfd key = {.fd = keys ? STDIN_FILENO : -1, .events = POLLIN};
        char letter;
        if (poll(&key, 1, (int)(left * 1000) + 1) <= 0 || key.revents == 0)
            continue;
        ssize_t n = read(STDIN_FILENO, &letter, 1);
        if (n == 1 && (letter == 'q' || letter == 'Q'))
            return false;
        if (n == 0 || (n < 0 && errno != EINTR))
            keys = false; /* no more keys will come */
    }
    return false;
}

/* --- frames ---------------------------------------------------------------------------------- */

static char *frame_of(const struct given *g, const struct survey *now, const struct survey *before)
{
    char *text = NULL;
    size_t len;
    FILE *to = open_memstream(&text, &len);
    if (to == NULL)
        abort();
    if (now != NULL)
        top_frame(g, now, before, to);
    else
        (void)fprintf(to, "gvctl top  %s  %scannot be reached; retrying%s\n", g->admin,
                      show_colour(&g->show, false), show_plain(&g->show));
    (void)fclose(to);
    return text;
}

/* Prints a single frame; two looks, an interval apart, give the rates. */
static int print_once(const struct given *g, struct survey *first, double interval_s)
{
    struct survey now;
    call_pause(interval_s);
    bool good = survey_take(&now, g, false);
    if (good)
        top_frame(g, &now, first, stdout);
    survey_free(first);
    if (good)
        survey_free(&now);
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
}

int top(const struct given *g)
{
    double interval_s = g->interval_s > 0 ? g->interval_s : 1;
    struct survey kept;
    if (!survey_take(&kept, g, false))
        return EXIT_FAILURE;
    if (g->once || isatty(STDOUT_FILENO) == 0)
        return print_once(g, &kept, interval_s);
    open_screen();
    char *frame = frame_of(g, &kept, NULL);
    draw(frame);
    bool known = true;
    double next = call_seconds() + interval_s;
    while (wait_until(next, frame)) {
        struct survey now;
        next = call_seconds() + interval_s;
        bool good = survey_take(&now, g, true);
        free(frame);
        frame = frame_of(g, good ? &now : NULL, good && known ? &kept : NULL);
        draw(frame);
        if (known)
            survey_free(&kept);
        known = good;
        kept = good ? now : (struct survey){0};
    }
    close_screen();
    free(frame);
    if (known)
        survey_free(&kept);
    return EXIT_SUCCESS;
}
