#!/bin/sh
# For Slurm's Epilog, as root: adds the end to the job's file from prolog.sh. Never drains a node.
# CROSSWIND_JOB_DIRECTORY: as for prolog.sh.
PATH=/usr/bin:/bin:/usr/sbin:/sbin # Slurm sets none
LC_ALL=C
export PATH LC_ALL
umask 022
set -f -C # no globbing; a redirection never writes to an existing file
directory=${CROSSWIND_JOB_DIRECTORY:-/run/crosswind/job.d}
keep_minutes=60 # by then even an agent that may not remove the file has read it

plain() {
    case $1 in
    *[!A-Za-z0-9._:@+-]*) text= ;;
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
host=
read -r host </proc/sys/kernel/hostname
case $node in
'' | "$host" | "${host%%.*}") file=$job.json ;;
*) file=$job.$node.json ;;
esac

cd -P "$directory" && [ "$(pwd -P)" = "$directory" ] && [ -O . ] || exit 0

now=$(date +%s%N)
case $now in
'' | *[!0-9]*) now=$(date +%s) ;; # a date without nanoseconds
esac
[ ${#now} -ge 19 ] || now=${now}000000000

record=
if [ -f "$file" ] && [ ! -L "$file" ] && [ -O "$file" ]; then
    read -r record <"$file"
fi
case $record in
*'"ended_ns"'*) exit 0 ;; # Slurm may run an epilog again; the first end counts
'{'*'}') record=${record%\}} ;;
*) # the prolog did not run here
    plain "$SLURM_CLUSTER_NAME"
    number "${SLURM_JOB_RESTART_COUNT:-0}"
    restarts=$number
    number "$SLURM_JOB_UID"
    record="{\"job_id\":\"$job\",\"node\":\"$node\",\"system\":\"$text\",\"restart_count\":$restarts,\"uid\":$number"
    ;;
esac

draft=.$job.$$
if printf '%s,"ended_ns":%s}\n' "$record" "$now" >"$draft"; then
    mv -f "$draft" "$file" || rm -f "$draft"
else
    rm -f "$draft" # the disk is full
fi
find . -maxdepth 1 -type f -name '*.json' -mmin "+$keep_minutes" -exec grep -q '"ended_ns"' {} \; -exec rm -f {} \;
exit 0
