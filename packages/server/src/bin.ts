#!/usr/bin/env node
/** The program of the npm package: `parley start` is the service, every other command is the command line’s. */

// It says so itself: before Node 24 the modules below do not even load, and crypto.argon2 is of 24.7.
const [major = 0, minor = 0] = process.versions.node.split('.').map(Number);
if (major < 24 || (major === 24 && minor < 7)) {
  process.stderr.write(
    `Parley needs Node 24.7 or newer, and this is Node ${process.versions.node}. ` +
      'With npm alone: npx -p node@24 -p @parley/server parley start\n',
  );
  process.exit(1);
}
await (process.argv[2] === 'start' ? import('./main.ts') : import('./cli.ts'));
