/* The commands of fusedlogp: argv begins with the command's name; each returns the exit code. */
#ifndef FLP_CLI_COMMANDS_H
#define FLP_CLI_COMMANDS_H

int flp_info_main(int argc, char **argv);    /* what the library finds on this machine */
int flp_merge_main(int argc, char **argv);   /* joins the shards of a result into one file */
int flp_records_main(int argc, char **argv); /* shows and maintains the records of tunings */
int flp_score_main(int argc, char **argv);   /* log-probabilities of tokens, from files of tensors */
int flp_tune_main(int argc, char **argv);    /* finds the fastest kernels for problems on this machine */
#endif
