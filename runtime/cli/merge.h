/* fusedlogp merge: the shards of a result into one file. */
#ifndef FLP_CLI_MERGE_H
#define FLP_CLI_MERGE_H

int flp_merge_main(int argc, char **argv);
#endif
