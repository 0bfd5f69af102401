// How the targets lie in what a product writes. KEEP IN STEP: targets_along (gen/kernels/tile_config.lua).
// Config: none
constexpr int no_targets = 0;                      // they contribute nothing
constexpr int targets_of_rows = 1;                 // each row has its own
constexpr int targets_in_rows = 2;                 // the rows are vocabulary entries
constexpr int targets_in_columns = 3;              // the columns are
template <class Config> struct TargetContribution; // target_contribution.cuh, emitted where there are any
