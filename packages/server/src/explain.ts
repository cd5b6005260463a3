import { ConfigError } from './config.ts';

/** Says in one line, for the person who runs the service, what is wrong. Only bugs of ours are shown with their stack. */
export function explain(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { code, port, path } = error as NodeJS.ErrnoException & { port?: number };
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} is in use. Stop what listens there, or set PORT to another one.`;
    case 'EACCES':
    case 'EPERM':
      return path
        ? `no permission for ${path}. Start as its owner, or set CHAT_DATA_DIR.`
        : `no permission to listen on port ${port}. Choose one above 1023 with PORT.`;
    default:
  }
  const [first] = error instanceof AggregateError ? (error.errors as Error[]) : [];
  const message = error.message || first?.message || error.name;
  return isOurs(error) ? `${message}\n${error.stack ?? ''}` : message;
}

const isOurs = (error: Error): boolean =>
  !(error instanceof ConfigError) &&
  [TypeError, ReferenceError, RangeError, SyntaxError].some((kind) => error instanceof kind);
