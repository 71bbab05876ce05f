# Talks to jinja_tool (and to programs made of printed C): many templates and cases in one process. See jinja_tool.c.
import subprocess


def answers(command, records):
    """For each (template, case) of texts as bytes: (kind, text) with kind ok, raised, error or refused."""
    sent = b"".join(b"%d %d\n%s%s" % (len(t), len(c), t, c) for t, c in records)
    done = subprocess.run(command, input=sent, capture_output=True)
    out, at, found = done.stdout, 0, []
    while at < len(out):
        end = out.index(b"\n", at)
        kind, n = out[at:end].split()
        found.append((kind.decode(), out[end + 1:end + 1 + int(n)]))
        at = end + 2 + int(n)
    if done.returncode or len(found) != len(records):
        raise SystemExit("%s: status %d after %d of %d records\n%s" % (command[0], done.returncode, len(found), len(records), done.stderr.decode(errors="replace")[-3000:]))
    return found
