// Words for reports: who, and at which line of a template.
#ifndef FLP_TESTS_HOST_MACHINE_REPORT_HPP
#define FLP_TESTS_HOST_MACHINE_REPORT_HPP
#include <cstdint>
#include <string>

namespace host {

std::string format(const char *format, ...) __attribute__((format(printf, 1, 2)));
// " at templates/sm90a/tile_product.cuh:97 in ..."; "" where nothing is known.
std::string describe_place(const void *pc);
std::string describe_agent(uint16_t agent);

} // namespace host
#endif
