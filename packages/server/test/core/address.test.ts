import assert from 'node:assert/strict';
import { test } from 'node:test';
import { networkOf } from '../../src/platform/address.ts';

test('plans#addresses: an IPv6 address counts by its first half, one that stands for an IPv4 address as that', () => {
  for (const [ip, network] of Object.entries({
    '203.0.113.7': '203.0.113.7',
    '::ffff:203.0.113.7': '203.0.113.7',
    '::FFFF:203.0.113.7': '203.0.113.7',
    '::ffff:cb00:7107': '203.0.113.7',
    '0:0:0:0:0:ffff:cb00:7107': '203.0.113.7',
    '2001:db8:1:2:3:4:5:6': '2001:db8:1:2::/64',
    '2001:0DB8:0001:0002::9': '2001:db8:1:2::/64',
    '2001:db8::1': '2001:db8:0:0::/64',
    'fe80::1%eth0': 'fe80:0:0:0::/64',
    '::1': '0:0:0:0::/64',
    '::': '0:0:0:0::/64',
    '2001:db8:1:2::203.0.113.7': '2001:db8:1:2::/64',
    unknown: 'unknown',
    '': '',
  }))
    assert.equal(networkOf(ip), network, ip);
});
