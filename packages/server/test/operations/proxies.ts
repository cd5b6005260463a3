import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { freePort, start } from '../storage/process.ts';
import { publicName } from './browser.ts';

/** The proxies of Debian with the files that we ship in `deploy/`: ports, paths and certificate are replaced, the rest stays as it is. */

const run = promisify(execFile);
const shipped = (file: string): string =>
  fileURLToPath(new URL(`../../../../deploy/${file}`, import.meta.url));

export interface RunningProxy {
  httpPort: number;
  httpsPort: number;
  ca: string;
  stop(): Promise<void>;
}

interface Place {
  folder: string;
  certificate: string;
  key: string;
  upstream: string;
  httpPort: number;
  httpsPort: number;
}

interface Proxy {
  file: string;
  command: string;
  /** Writes its configuration from the shipped file, and returns its arguments. */
  prepare(text: string, place: Place): Promise<string[]>;
}

/** Every text must be there: a substitution that found nothing would test another file than the one that is shipped. */
function replaced(text: string, pairs: [from: string | RegExp, to: string][]): string {
  return pairs.reduce((before, [from, to]) => {
    const after = before.replaceAll(from, to);
    if (after === before) throw new Error(`${String(from)} is not in the file`);
    return after;
  }, text);
}

export const proxies = {
  nginx: {
    file: 'nginx/parley.conf',
    command: '/usr/sbin/nginx',
    async prepare(text, { folder, certificate, key, upstream, httpPort, httpsPort }) {
      const site = replaced(text, [
        ['server 127.0.0.1:8080;', `server ${upstream};`],
        ['listen 80;', `listen 127.0.0.1:${httpPort};`],
        ['listen 443 ', `listen 127.0.0.1:${httpsPort} `],
        [/^ *listen \[::\].*\n/gm, ''],
        [`/etc/letsencrypt/live/${publicName}/fullchain.pem`, certificate],
        [`/etc/letsencrypt/live/${publicName}/privkey.pem`, key],
      ]);
      await writeFile(join(folder, 'parley.conf'), site);
      const paths = ['client_body', 'proxy', 'fastcgi', 'uwsgi', 'scgi'];
      await writeFile(
        join(folder, 'nginx.conf'),
        `daemon off; master_process off; pid ${folder}/pid; error_log stderr;
        ${process.getuid?.() === 0 ? 'user root;' : ''}
        events { worker_connections 512; }
        http {
          access_log off;
          ${paths.map((name) => `${name}_temp_path ${folder}/${name};`).join(' ')}
          include ${folder}/parley.conf;
        }\n`,
      );
      return ['-c', join(folder, 'nginx.conf'), '-e', 'stderr'];
    },
  },
  Caddy: {
    file: 'caddy/Caddyfile',
    command: 'caddy',
    async prepare(text, { folder, certificate, key, upstream, httpPort, httpsPort }) {
      const options = `{
        admin off
        auto_https disable_certs
        skip_install_trust
        storage file_system ${folder}/storage
        http_port ${httpPort}
        https_port ${httpsPort}
        default_bind 127.0.0.1
        servers {
          protocols h1 h2
        }
      }\n`;
      const site = replaced(text, [
        ['{$PARLEY_NODES:127.0.0.1:8080}', upstream],
        // A machine that is busy with other tests is no node that fails.
        ['health_interval 5s', 'health_interval 5s\n\t\thealth_timeout 100s'],
        ['{$PARLEY_NAME:chat.example.com} {', `${publicName} {\n\ttls ${certificate} ${key}`],
      ]);
      await writeFile(join(folder, 'Caddyfile'), options + site);
      return ['run', '--adapter', 'caddyfile', '--config', join(folder, 'Caddyfile')];
    },
  },
  HAProxy: {
    file: 'haproxy/haproxy.cfg',
    command: '/usr/sbin/haproxy',
    async prepare(text, { folder, certificate, key, upstream, httpPort, httpsPort }) {
      const pair = (await readFile(certificate, 'utf8')) + (await readFile(key, 'utf8'));
      await writeFile(join(folder, 'pair.pem'), pair);
      const whole = replaced(text, [
        ['server node1 127.0.0.1:8080', `server node1 ${upstream}`],
        ['bind :80\n', `bind 127.0.0.1:${httpPort}\n`],
        ['bind :443 ', `bind 127.0.0.1:${httpsPort} `],
        [`/etc/haproxy/certs/${publicName}.pem`, join(folder, 'pair.pem')],
        // A machine that is busy with other tests is no node that fails.
        ['timeout check 5s', 'timeout check 100s'],
        ['timeout http-request 10s', 'timeout http-request 100s'],
        // Who may not be root here, or has no log to write to, and how many descriptors this machine has.
        [/^ *(chroot|user|group|maxconn|log) .*\n/gm, ''],
      ]);
      await writeFile(join(folder, 'haproxy.cfg'), whole);
      return ['-db', '-f', join(folder, 'haproxy.cfg')];
    },
  },
} satisfies Record<string, Proxy>;

/** The files of a certificate for the public name, signed by itself. */
async function certificateIn(folder: string): Promise<{ certificate: string; key: string }> {
  const [certificate, key] = [join(folder, 'cert.pem'), join(folder, 'key.pem')];
  const made = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', key];
  const subject = ['-subj', `/CN=${publicName}`, '-addext', `subjectAltName=DNS:${publicName}`];
  await run('openssl', ['req', '-x509', '-days', '2', ...made, '-out', certificate, ...subject]);
  return { certificate, key };
}

export async function startProxy(name: keyof typeof proxies, upstream: string): Promise<RunningProxy> {
  const { file, command, prepare }: Proxy = proxies[name];
  const folder = await mkdtemp(join(tmpdir(), 'parley-proxy-'));
  try {
    await mkdir(join(folder, 'storage'));
    const { certificate, key } = await certificateIn(folder);
    const [httpPort, httpsPort] = [await freePort(), await freePort()];
    const place = { folder, certificate, key, upstream, httpPort, httpsPort };
    const args = await prepare(await readFile(shipped(file), 'utf8'), place);
    const running = await start(command, args, httpsPort, `deploy/${file}`);
    return {
      httpPort,
      httpsPort,
      ca: await readFile(certificate, 'utf8'),
      async stop() {
        await running.stop();
        await rm(folder, { recursive: true, force: true });
      },
    };
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw error;
  }
}
