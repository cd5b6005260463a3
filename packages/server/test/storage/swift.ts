import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir, userInfo } from 'node:os';
import { join } from 'node:path';
import { freePort, start } from './process.ts';
import type { Running } from './process.ts';

export interface Swift extends Running {
  endpoint: string;
  accessKeyId: string;
  secretAccessKey: string;
}

const needs = 'Debian packages: swift-proxy swift-account swift-container swift-object memcached';

const makeRings = `
import sys
from swift.common.ring import RingBuilder
for name, port in zip(('account', 'container', 'object'), sys.argv[2:]):
    builder = RingBuilder(4, 1, 0)
    builder.add_dev(dict(id=0, region=1, zone=1, ip='127.0.0.1', port=int(port), device='d1', weight=1, meta=''))
    builder.rebalance()
    builder.get_ring().save(sys.argv[1] + '/' + name + '.ring.gz')
`;

/** OpenStack Swift with its S3 interface: three rings of one device, memcached, four servers, throw-away data. */
export async function startSwift(): Promise<Swift> {
  const directory = mkdtempSync(join(tmpdir(), 'swift-'));
  const running: Running[] = [];
  const stop = async () => {
    await Promise.all(running.map((r) => r.stop()));
    rmSync(directory, { recursive: true, force: true, maxRetries: 3 });
  };
  try {
    mkdirSync(join(directory, 'devices', 'd1'), { recursive: true });
    const user = userInfo().username;
    const ports = { account: await freePort(), container: await freePort(), object: await freePort() };
    const rings = Object.values(ports).map(String);
    // Debian's own interpreter: another python3 earlier in the path has no Swift.
    execFileSync('/usr/bin/python3', ['-c', makeRings, directory, ...rings], {
      stdio: ['ignore', 'ignore', 'inherit'],
    });

    const common = (port: number) => `[DEFAULT]
bind_ip = 127.0.0.1
bind_port = ${port}
user = ${user}
swift_dir = ${directory}
devices = ${directory}/devices
mount_check = false
workers = 0
`;
    const memcached = await freePort();
    running.push(
      await start('memcached', ['-l', '127.0.0.1', '-p', String(memcached), '-u', user], memcached, needs),
    );
    writeFileSync(
      join(directory, 'swift.conf'),
      '[swift-hash]\nswift_hash_path_suffix = test\nswift_hash_path_prefix = test\n',
    );
    const launch = async (kind: string, port: number, config: string) => {
      const file = join(directory, `${kind}.conf`);
      writeFileSync(file, common(port) + config);
      running.push(await start(`swift-${kind}-server`, [file], port, needs));
    };
    await Promise.all(
      Object.entries(ports).map(([kind, port]) =>
        launch(
          kind,
          port,
          `[pipeline:main]\npipeline = ${kind}-server\n[app:${kind}-server]\nuse = egg:swift#${kind}\n`,
        ),
      ),
    );
    const proxy = await freePort();
    await launch(
      'proxy',
      proxy,
      `[pipeline:main]
pipeline = catch_errors cache s3api tempauth proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
[filter:cache]
use = egg:swift#memcache
memcache_servers = 127.0.0.1:${memcached}
[filter:s3api]
use = egg:swift#s3api
location = us-east-1
storage_domain = s3.test
allow_multipart_uploads = false
[filter:tempauth]
use = egg:swift#tempauth
user_test_tester = testing .admin
`,
    );
    return {
      endpoint: `http://127.0.0.1:${proxy}`,
      accessKeyId: 'test:tester',
      secretAccessKey: 'testing',
      stop,
    };
  } catch (error) {
    await stop();
    throw error;
  }
}
