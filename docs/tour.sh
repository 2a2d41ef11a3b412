# The first look, as `make run` shows it: each command, then what it prints. `cyrene` is on the PATH.
set -u

say() { printf '\n%s\n' "$*"; }

show() {
    expected=$1
    shift
    printf '\n$ %s\n' "$*"
    "$@"
    status=$?
    if [ "$status" -ne "$expected" ]; then
        printf 'this ended with %s instead of %s\n' "$status" "$expected" >&2
        exit 1
    fi
}

say "The plugins of plugins.json, their state and health:"
show 0 cyrene health

say "A call, and one that calculates:"
show 0 cyrene call hello name=开拓者
show 0 cyrene call calculator "expression=2*(3+4)"

say "A tool that runs long tells its progress; here it indexes docs/, and then a page is found:"
show 0 cyrene call index folder=docs
show 0 cyrene call search "query=what happens when a plugin crashes" limit=1

say "A refused call says what is wrong, where, and how to mend it:"
show 2 cyrene call hello nmae=开拓者

cat <<'NEXT'

What to type next:
  . .venv/bin/activate       puts `cyrene` on your PATH
  cyrene tools               every tool, with its arguments
  cyrene new weather         a plugin of your own, ready to edit
  cyrene --help              all commands
NEXT
