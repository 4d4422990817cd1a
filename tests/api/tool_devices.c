/* `samepage devices` says of each device that cannot be used that it cannot, and why: of a virtual
 * one, and of a GPU whose name it knows from the last time. */
#include <sys/stat.h>

#include "check_child.h"

#define REFUSED "   usable         no: its process could not be started"

static char text[1 << 16]; /* what the tool said last */

static void ask(const char *devices, const char *program)
{
    const char *words[] = {getenv("SAMEPAGE_TEST_TOOL"), "devices", NULL};
    setenv("SAMEPAGE_DEVICES", devices, 1);
    if (program)
        setenv("SAMEPAGE_DEVICE_PROGRAM", program, 1);
    else
        unsetenv("SAMEPAGE_DEVICE_PROGRAM");
    CHECK(run_child(words, false, text, sizeof text) == 0);
}

static unsigned times(const char *words)
{
    unsigned count = 0;
    for (const char *at = text; (at = strstr(at, words)); at++)
        count++;
    return count;
}

static void expect(unsigned refused, const char *why)
{
    CHECK(times("   driver ") == 3);
    CHECK(times("   usable ") == refused);
    CHECK(times(REFUSED) == refused);
    CHECK(!refused || times(why) == refused);
    CHECK(!refused || strstr(text, REFUSED) > strstr(text, "\n1  "));
}

int main(void)
{
    char path[] = "/tmp/samepage-test-XXXXXX", why[200];
    int file = mkstemp(path);
    REQUIRE(file >= 0 && fchmod(file, 0600) == 0);
    close(file);
    REQUIRE(getenv("SAMEPAGE_TEST_TOOL"));
    snprintf(why, sizeof why,
             " (Permission denied); %s must be a program that this user may run.\n", path);

    ask("cpu,virtual:2,mem=64M", NULL);
    expect(0, NULL);
    CHECK(times("  Virtual device ") == 2);
    ask("cpu,virtual:2,mem=64M", path);
    expect(2, why);
    CHECK(times("  Virtual device ") == 2);
    ask("cpu,virtual:2,mem=64M", "/bin/true");
    expect(2, " (it ended before it was ready).\n");
    ask("cpu,virtual:2,mem=64M", "/nonexistent");
    expect(2,
           " (No such file or directory); samepage-device must lie beside the library, or be named "
           "in SAMEPAGE_DEVICE_PROGRAM.\n");

    ask("cpu,cuda:0,virtual,mem=64M", NULL);
    expect(0, NULL);
    CHECK(times("   driver         cuda, ") == 1);
    ask("cpu,cuda:0,virtual,mem=64M", path);
    expect(2, why);
    CHECK(times("   driver         cuda, ") == 1);

    /* A GPU that nothing is known of is no device; it is said why. */
    setenv("SAMEPAGE_CACHE", "0", 1);
    setenv("FAKE_CUDA_ATTRIBUTES", "75=6,76=1", 1);
    ask("cpu,cuda:0", NULL);
    CHECK(times("   driver ") == 1);
    CHECK(times("\nNVIDIA GPU 0 cannot be used: its compute capability is 6.1, and 7.0 or newer is "
                "needed.\n") == 1);
    unlink(path);
    return check_result();
}
