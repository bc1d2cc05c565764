# What the packages have in common: read by packaging/deb/build and packaging/dist.
#
# Everything in a package has one time, the last commit's (or SOURCE_DATE_EPOCH), so that
# building it twice gives the same bytes.

root=$(cd "$(dirname "$0")/${up:-..}" && pwd)
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' "$root/Cargo.toml" | head -n 1)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || date +%s)}
export SOURCE_DATE_EPOCH
export LC_ALL=C TZ=UTC
umask 022

# A file that others may read; a program.
put() { install -D -m 644 "$1" "$2"; }
put_program() { install -D -m 755 "$1" "$2"; }

# The manual pages and completions that the binary makes of its own command line.
put_words() { # BINARY SHARE
	mkdir -p "$2/man/man1" "$2/bash-completion/completions" \
		"$2/zsh/vendor-completions" "$2/fish/vendor_completions.d"
	"$1" man "$2/man/man1" >/dev/null
	gzip -9n "$2"/man/man1/*.1
	"$1" completion bash >"$2/bash-completion/completions/sterna"
	"$1" completion zsh >"$2/zsh/vendor-completions/_sterna"
	"$1" completion fish >"$2/fish/vendor_completions.d/sterna.fish"
}

# Splits a program into itself and its debug symbols.
split_symbols() { # BINARY STRIPPED SYMBOLS
	mkdir -p "$(dirname "$2")" "$(dirname "$3")"
	objcopy --only-keep-debug --compress-debug-sections "$1" "$3"
	objcopy --strip-unneeded "$1" "$2"
	chmod 755 "$2"
	chmod 644 "$3"
}

# Gives everything below a directory the one time.
set_times() { find "$1" -exec touch --no-dereference --date="@$SOURCE_DATE_EPOCH" {} +; }
