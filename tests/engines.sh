#!/usr/bin/env bash
# Brings the engines that tests and benches compare with, once, into a directory:
#   nextflow-25.04   for `nextflow-25.04 lint FILES`, the strict parser
#   nextflow-24.10   the version of the managed engine, started the ordinary way
# and prints the variables that name them. Use: variables=$(tests/engines.sh DIR) && eval "$variables"
set -euo pipefail

if [ $# -ne 1 ]; then
    echo 'usage: variables=$(tests/engines.sh DIR) && eval "$variables"' >&2
    exit 2
fi
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
mkdir -p "$1"
place=$(cd "$1" && pwd)

command -v mvn >/dev/null || {
    echo "error: mvn is missing (on Debian: apt-get install maven)" >&2
    exit 4
}

# Resolves a pom into DIR/NAME; a directory that is there is whole.
resolve() {
    local name=$1 pom=$2 partial
    [ -d "$place/$name" ] && return
    echo "bringing $name with mvn" >&2
    partial=$(mktemp -d "$place/partial-XXXXXX")
    trap 'rm -rf "$partial"' RETURN
    cp "$pom" "$partial/pom.xml"
    mvn --quiet --batch-mode --file "$partial/pom.xml" -DoutputDirectory="$partial/jars" \
        org.apache.maven.plugins:maven-dependency-plugin:copy-dependencies >&2
    # Another copy of this script may have been faster.
    mv -T "$partial/jars" "$place/$name" 2>/dev/null || [ -d "$place/$name" ]
}

# Writes DIR/NAME, which starts the Nextflow of DIR/JARS with no other options than those it cannot do without.
wrap() {
    local name=$1 jars=$2
    cat >"$place/$name.$$" <<END
#!/usr/bin/env bash
export NXF_HOME=\${NXF_HOME:-$(printf %q "$place/home")}
export NXF_OFFLINE=true NXF_DISABLE_CHECK_LATEST=true
java=java
[ -z "\${JAVA_HOME:-}" ] || java=\$JAVA_HOME/bin/java
opens=()
for package in java.lang java.io java.nio java.net java.util java.util.concurrent.locks \\
    java.util.concurrent.atomic java.util.regex java.nio.file.spi sun.nio.ch sun.nio.fs \\
    sun.net.www.protocol.http sun.net.www.protocol.https sun.net.www.protocol.ftp \\
    sun.net.www.protocol.file jdk.internal.misc jdk.internal.vm; do
    opens+=("--add-opens=java.base/\$package=ALL-UNNAMED")
done
exec "\$java" "\${opens[@]}" -cp $(printf %q "$place/$jars")/\* nextflow.cli.Launcher "\$@"
END
    chmod +x "$place/$name.$$"
    mv "$place/$name.$$" "$place/$name"
}

resolve nextflow-24.10.8-jars "$here/../templates/engine/pom.xml"
resolve nextflow-25.04.4-jars "$here/engines/lint.xml"
wrap nextflow-24.10 nextflow-24.10.8-jars
wrap nextflow-25.04 nextflow-25.04.4-jars
echo "export SCFOUNDRY_TEST_NEXTFLOW_PLAIN=$(printf %q "$place/nextflow-24.10")"
echo "export SCFOUNDRY_TEST_LINT=$(printf %q "$place/nextflow-25.04")"
