# The header of tomorrow: each struct has one more field at its end.
/^typedef struct/ { in_struct = 1 }
/^typedef enum/ { in_struct = 0 }
/^} flp_/ && in_struct && !/flp_sizes/ { print "    int64_t appended;"; in_struct = 0 }
{ print }
