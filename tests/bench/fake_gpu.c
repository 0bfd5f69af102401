/* Resets the driver without a device for each test of a benchmark. */
#include "fake_gpu.h"

#include "runtime/assertions.h"
#include "runtime/fake_call.h"

flp_gpu fake_gpu;
json_t *fake_gpu_result;
static flp_context *context;

void fake_gpu_start(void (*on_launch)(const fake_launch *launch))
{
    context = fake_call_start(0);
    fake_driver.on_launch = on_launch;
    fake_gpu = (flp_gpu){ 0 };
    assert_succeeds(flp_driver_get(&fake_gpu.driver));
    fake_gpu.facts.compute_capability = 90;
}

int fake_gpu_stop(void **state)
{
    (void)state;
    json_decref(fake_gpu_result);
    fake_gpu_result = NULL;
    flp_context_destroy(context);
    return 0;
}
