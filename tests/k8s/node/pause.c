/* Holds the network of a pod until a signal ends it. */
#include <signal.h>
#include <unistd.h>

static void end(int number)
{
    (void)number;
    _exit(0);
}

int main(void)
{
    signal(SIGINT, end);
    signal(SIGTERM, end);
    for (;;)
        pause();
}
