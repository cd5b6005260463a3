import { renderToString } from 'react-dom/server.browser';
import { version } from 'react';
import { App } from './app.tsx';
import type { Options } from './app.tsx';

/** The same page, as a server would render it. */
export const render = (options: Options): string => renderToString(<App {...options} />);
export { version };
