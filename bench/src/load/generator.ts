import { Crowd } from './crowd.ts';
import { runHttp } from './http.ts';
import type { FromLoad, LoadReport, LoadRequest } from './messages.ts';

/** The load generator's process: takes one request at a time from the harness. */

const tell = (message: FromLoad): void => {
  process.send?.(message);
};
const window = (edge: 'begin' | 'end'): void => tell({ window: edge });
const crowd = new Crowd(Math.random, window);

async function serve(request: LoadRequest): Promise<LoadReport> {
  switch (request.do) {
    case 'open':
      return crowd.open(request);
    case 'run':
      return crowd.run(request);
    case 'http':
      return runHttp(request, window);
    case 'close':
      crowd.close();
      return null;
  }
}

process.on('message', (request: LoadRequest) => {
  serve(request).then(
    (report) => tell({ report }),
    (error: unknown) =>
      tell({ failure: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});
process.on('disconnect', () => process.exit(0));
