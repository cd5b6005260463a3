#!/usr/bin/env node
/** The program of the npm package: `parley start` is the service, every other command is the command line’s. */

// It says so itself: before Node 24 the modules below do not even load.
const needed = 24;
if (Number(process.versions.node.split('.')[0]) < needed) {
  process.stderr.write(
    `Parley needs Node ${needed} or newer, and this is Node ${process.versions.node}. ` +
      `With npm alone: npx -p node@${needed} -p @parley/server parley start\n`,
  );
  process.exit(1);
}
await (process.argv[2] === 'start' ? import('./main.ts') : import('./cli.ts'));
