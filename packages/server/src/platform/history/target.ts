import { sslModes, tlsOfMode } from '../sslmode.ts';
import type { TlsLevel } from '../sslmode.ts';
import type { HistoryEngine } from './port.ts';

/**
 * A database URL that a customer entered. It is never passed to a driver, because drivers read files, run code and
 * connect to hosts that a URL names. Only the fields below are taken from it.
 */
export interface HistoryTarget {
  engine: HistoryEngine;
  /** Several hosts only for a MongoDB replica set. */
  hosts: { host: string; port: number }[];
  user: string;
  password: string;
  database: string;
  schema: string | null;
  tls: TlsLevel;
  /** PEM of the authority that signed the server's certificate. */
  ca: string | null;
  /** MongoDB: the database in which the user is defined. */
  authSource: string | null;
  /** The whole URL of an http endpoint. */
  url: string;
}

export interface HistorySource {
  url: string;
  type?: HistoryEngine | undefined;
  schema?: string | null | undefined;
  /** Secrets of an http endpoint: whsec_… */
  secrets?: readonly string[] | undefined;
}

/** The message may be shown to the person who entered the URL: it repeats nothing of it. */
export class TargetError extends Error {
  override name = 'TargetError';
}

const schemes: Record<string, HistoryEngine> = {
  'postgres:': 'postgres',
  'postgresql:': 'postgres',
  'mysql:': 'mysql',
  'mariadb:': 'mysql',
  'mongodb:': 'mongodb',
  'https:': 'http',
  'http:': 'http',
};
const ports: Record<HistoryEngine, number> = { postgres: 5432, mysql: 3306, mongodb: 27017, http: 443 };
const names: Record<HistoryEngine, string> = {
  postgres: 'PostgreSQL',
  mysql: 'MySQL',
  mongodb: 'MongoDB',
  http: 'an http endpoint',
};

/** The engine that a URL means; undefined if none. */
export const engineOf = (url: string): HistoryEngine | undefined =>
  schemes[/^[a-z0-9+]+:/i.exec(url)?.[0].toLowerCase() ?? ''];

export function parseTarget(
  text: string,
  given: { type?: HistoryEngine | undefined; schema?: string | null | undefined } = {},
): HistoryTarget {
  if (/[\p{Cc}\u2028\u2029]/u.test(text)) throw new TargetError('The URL has a control character.');
  const engine = engineOf(text);
  if (/^mongodb\+srv:/i.test(text))
    throw new TargetError(
      'Give the hosts themselves (mongodb://…): names of the form mongodb+srv are not followed.',
    );
  if (!engine)
    throw new TargetError(
      `The URL must begin with one of ${Object.keys(schemes)
        .map((s) => `${s}//`)
        .join(', ')}.`,
    );
  if (given.type !== undefined && given.type !== engine)
    throw new TargetError(`The URL is one of ${names[engine]}, the type says ${names[given.type]}.`);
  if (given.schema != null && !/^[A-Za-z_][A-Za-z0-9_]{0,62}$/.test(given.schema))
    throw new TargetError('The schema must be a plain name: letters, digits and _.');
  return engine === 'http' ? httpTarget(text) : serverTarget(engine, text, given.schema ?? null);
}

/** The same, for opening it. */
export function parseSource(source: HistorySource): HistoryTarget {
  const target = parseTarget(source.url, source);
  if (target.engine === 'http' && !source.secrets?.length)
    throw new TargetError('An http endpoint needs its signing secret.');
  return target;
}

function httpTarget(text: string): HistoryTarget {
  const url = URL.parse(text);
  if (!url) throw new TargetError('The URL cannot be read.');
  if (url.username || url.password)
    throw new TargetError('The URL must not carry credentials: requests are signed.');
  return {
    engine: 'http',
    hosts: [],
    user: '',
    password: '',
    database: '',
    schema: null,
    ca: null,
    authSource: null,
    tls: url.protocol === 'https:' ? 'verified' : 'off',
    url: url.href,
  };
}

function serverTarget(engine: HistoryEngine, text: string, schema: string | null): HistoryTarget {
  // The URL class does not support a list of hosts: the list is taken out, and its first host put in.
  const parts = /^([a-z]+:\/\/)(?:([^@/?#]*)@)?([^/?#]+)(.*)$/i.exec(text);
  if (!parts) throw new TargetError('The URL names no host.');
  const [, , credentials = '', list = '', rest = ''] = parts;
  const hosts = list.split(',').map((one) => hostOf(one, ports[engine]));
  if (hosts.length > 1 && engine !== 'mongodb') throw new TargetError('The URL names more than one host.');
  if (hosts.length > 7) throw new TargetError('The URL names more than seven hosts.');
  const url = URL.parse(`x://h${rest}`);
  if (!url) throw new TargetError('The URL cannot be read.');
  const colon = credentials.indexOf(':');
  const user = decode(colon < 0 ? credentials : credentials.slice(0, colon));
  const password = colon < 0 ? '' : decode(credentials.slice(colon + 1));
  // Drivers would take the user of this process, or one that its environment names.
  if (user === '' && engine !== 'mongodb')
    throw new TargetError('The URL must name a user: …//user:password@host/database.');
  const database = decode(url.pathname.slice(1));
  if (!/^[^\0/\\.$"`']{1,63}$/.test(database))
    throw new TargetError('The URL must name a database: …@host/database.');
  const options = Object.fromEntries(
    [...url.searchParams].map(([name, value]) => [name.toLowerCase(), value]),
  );
  const known = [
    'sslmode',
    'ssl-mode',
    'tls',
    'ssl',
    'ca',
    ...(engine === 'mongodb' ? ['authsource', 'tlsallowinvalidcertificates'] : []),
  ];
  const ignored = [
    'retrywrites',
    'w',
    'appname',
    'replicaset',
    'charset',
    'application_name',
    'channel_binding',
    'directconnection',
  ];
  const unknown = Object.keys(options).find((name) => !known.includes(name) && !ignored.includes(name));
  if (unknown !== undefined)
    throw new TargetError(`The URL has an option that is not known here. Known are ${known.join(', ')}.`);
  return {
    engine,
    hosts,
    user,
    password,
    database,
    schema,
    url: '',
    tls: tlsOf(options),
    ca: options['ca'] === undefined ? null : pem(options['ca']),
    authSource: options['authsource'] ?? null,
  };
}

function hostOf(text: string, port: number): { host: string; port: number } {
  const url = URL.parse(`http://${text}`);
  const named = /:(\d+)$/.exec(text)?.[1];
  if (!url?.hostname || url.username || url.pathname !== '/')
    throw new TargetError('The URL names no valid host.');
  return { host: url.hostname.replace(/^\[(.*)\]$/, '$1'), port: named === undefined ? port : Number(named) };
}

/** TLS is verified unless the URL says otherwise. */
function tlsOf(options: Record<string, string>): HistoryTarget['tls'] {
  const mode = options['sslmode'] ?? options['ssl-mode'];
  const flag = options['tls'] ?? options['ssl'];
  if (mode === undefined && flag === undefined)
    return options['tlsallowinvalidcertificates'] === 'true' ? 'unverified' : 'verified';
  if (mode === undefined) {
    if (flag === 'false') return 'off';
    if (flag === 'true') return options['tlsallowinvalidcertificates'] === 'true' ? 'unverified' : 'verified';
    throw new TargetError('The option tls must be true or false.');
  }
  const level = tlsOfMode(mode, options['ca'] !== undefined);
  if (level === undefined) throw new TargetError(`The option sslmode must be ${sslModes}.`);
  return level;
}

function pem(base64: string): string {
  const text = Buffer.from(base64, 'base64').toString();
  if (!text.includes('-----BEGIN CERTIFICATE-----'))
    throw new TargetError('The option ca must be a certificate in PEM form, in base64.');
  return text;
}

function decode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new TargetError('The URL has a "%" that is not written %25.');
  }
}

/** The URL for showing, without the password and the values of options. */
export function maskUrl(text: string): string {
  const masked = text.replace(/^([a-z0-9+]+:\/\/)([^@/?#]*)@/i, (_, scheme: string, credentials: string) => {
    const colon = credentials.indexOf(':');
    return `${scheme}${colon < 0 ? credentials : `${credentials.slice(0, colon)}:***`}@`;
  });
  const engine = engineOf(text);
  return masked.replace(/\?.*$/s, (query) => {
    const harmless = /^(sslmode|ssl-mode|tls|ssl|authsource|replicaset|w|retrywrites|charset)$/i;
    return query.replace(
      /([?&])([^&=]*)=([^&=]*)[^&]*/g,
      (_, before: string, name: string, value: string) =>
        `${before}${name}=${engine !== 'http' && harmless.test(name) ? value : '***'}`,
    );
  });
}

/** The URL of the same database for another user. */
export const urlFor = (text: string, user: string, password: string): string =>
  text.replace(
    /^([a-z0-9+]+:\/\/)(?:[^@/?#]*@)?/i,
    (_, scheme: string) => `${scheme}${encodeURIComponent(user)}:${encodeURIComponent(password)}@`,
  );
