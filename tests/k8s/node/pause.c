/* Keeps a pod's network namespace alive until a signal ends the process. */
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
