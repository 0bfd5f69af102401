/* fusedlogp info: what the library finds on this machine. */
#ifndef FLP_CLI_INFO_H
#define FLP_CLI_INFO_H

int flp_info_main(int argc, char **argv);
#endif
