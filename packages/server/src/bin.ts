#!/usr/bin/env node
/** The program of the npm package: the command line, of which `parley start` is the service. */

// It says so itself: before Node 24 the modules below do not even load, and crypto.argon2 is of 24.7.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 24 || (major === 24 && minor < 7)) {
  process.stderr.write(
    `Parley needs Node 24.7 or newer, and this is Node ${process.versions.node}. ` +
      'With npm alone: npx -p node@24 -p @parley/server parley start\n',
  );
  process.exit(1);
}

// npx starts a shell that starts this program, and a SIGTERM to npx ends the shell alone. Then this program ends as if it had been told itself.
if (process.env['npm_lifecycle_event'] === 'npx') {
  const shell = process.ppid;
  const watch = setInterval(() => {
    if (process.ppid === shell) return;
    clearInterval(watch);
    process.kill(process.pid, 'SIGTERM');
  }, 500).unref();
}

// The command line explains the command; here its settings are asked for.
const settings = process.argv[2] === 'start' && process.argv.includes('--help');
await (settings ? import('./main.ts') : import('./cli.ts'));
