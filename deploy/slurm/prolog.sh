#!/bin/sh
# For Slurm's Prolog, as root: writes a small file that informs the node's agent of the job. Never delays a job.
# CROSSWIND_JOB_DIRECTORY: the folder of the file; a path without symbolic links.
PATH=/usr/bin:/bin:/usr/sbin:/sbin # Slurm sets none
LC_ALL=C
export PATH LC_ALL
umask 022
set -f -C # no globbing; a redirection never writes to an existing file
directory=${CROSSWIND_JOB_DIRECTORY:-/run/crosswind/job.d}

# Only characters that have no special meaning in JSON, a shell or a path go into the file.
plain() {
    case $1 in
    *[!]A-Za-z0-9._:@+[,-]*) text= ;;
    *) text=$1 ;;
    esac
}
number() {
    case $1 in
    '' | *[!0-9]* | 0?*) number=null ;;
    *) number=$1 ;;
    esac
}

plain "$SLURM_JOB_ID"
job=$text
case $job in
'' | .*) exit 0 ;;
esac
plain "$SLURMD_NODENAME"
node=$text
plain "$SLURM_CLUSTER_NAME"
system=$text
plain "${SLURM_JOB_NODELIST:-$SLURM_NODELIST}"
nodelist=$text
number "$SLURM_JOB_UID"
uid=$number
number "${SLURM_JOB_RESTART_COUNT:-0}"
restarts=$number
case $SLURM_JOB_CPUS_PER_NODE in
*,*) number '' ;; # the nodes differ, and the variable does not say which has how many
*) number "${SLURM_JOB_CPUS_PER_NODE%%\(*}" ;;
esac
cpus=$number
plain "$SLURM_JOB_GPUS"
gpus=
IFS=,
for gpu in $text; do
    gpus="$gpus${gpus:+,}\"$gpu\""
done
unset IFS

# Several slurmd on one host share the directory.
host=
read -r host </proc/sys/kernel/hostname
case $node in
'' | "$host" | "${host%%.*}") file=$job.json ;;
*) file=$job.$node.json ;;
esac

# Once inside, nobody can replace the folder.
[ -d "$directory" ] || mkdir -p "$directory"
cd -P "$directory" && [ "$(pwd -P)" = "$directory" ] && [ -O . ] || exit 0

now=$(date +%s%N)
case $now in
'' | *[!0-9]*) now=$(date +%s) ;; # a date without nanoseconds
esac
[ ${#now} -ge 19 ] || now=${now}000000000

draft=.$job.$$
if printf '{"job_id":"%s","node":"%s","system":"%s","restart_count":%s,"uid":%s,"nodelist":"%s","gpus":[%s],"cpus":%s,"started_ns":%s}\n' \
    "$job" "$node" "$system" "$restarts" "$uid" "$nodelist" "$gpus" "$cpus" "$now" >"$draft"; then
    mv -f "$draft" "$file" || rm -f "$draft"
else
    rm -f "$draft" # the disk is full
fi
exit 0
