import { BlockList, isIPv4, isIPv6 } from 'node:net';

// Addresses that an outbound connection may not reach (webhooks#targets). For IPv4 this lists what is refused, by
// the IANA special-purpose registry. IPv6 allows only global unicast, minus the special blocks inside it, so mapped
// (::ffff:), NAT64 (64:ff9b::), unique-local, link-local and multicast addresses are refused by default.
const refused4: [net: string, prefix: number, what: string][] = [
  ['0.0.0.0', 8, 'an unspecified address'],
  ['10.0.0.0', 8, 'a private address'],
  ['100.64.0.0', 10, 'a carrier-grade NAT address'],
  ['127.0.0.0', 8, 'a loopback address'],
  ['169.254.0.0', 16, 'a link-local address'],
  ['172.16.0.0', 12, 'a private address'],
  ['192.0.0.0', 24, 'a reserved address'],
  ['192.0.2.0', 24, 'a documentation address'],
  ['192.88.99.0', 24, 'a reserved address'],
  ['192.168.0.0', 16, 'a private address'],
  ['198.18.0.0', 15, 'a benchmarking address'],
  ['198.51.100.0', 24, 'a documentation address'],
  ['203.0.113.0', 24, 'a documentation address'],
  ['224.0.0.0', 4, 'a multicast address'],
  ['240.0.0.0', 4, 'a reserved address'],
];
const refused6: [net: string, prefix: number, what: string][] = [
  ['::1', 128, 'a loopback address'],
  ['fc00::', 7, 'a private address'],
  ['fe80::', 10, 'a link-local address'],
  ['2001::', 23, 'a Teredo or reserved address'],
  ['2001:db8::', 32, 'a documentation address'],
  ['2002::', 16, 'a 6to4 address'],
  ['3fff::', 20, 'a documentation address'],
];

const lists = (table: typeof refused4, family: 'ipv4' | 'ipv6') =>
  table.map(([net, prefix, what]) => {
    const list = new BlockList();
    list.addSubnet(net, prefix, family);
    return { list, what };
  });
const lists4 = lists(refused4, 'ipv4');
const lists6 = lists(refused6, 'ipv6');
const global6 = new BlockList();
global6.addSubnet('2000::', 3, 'ipv6');

/** Why this IP address must not be connected to, or null if it may be. Anything but a plain IP address is refused. */
export function addressRefusal(address: string): string | null {
  if (isIPv4(address)) return lists4.find((l) => l.list.check(address, 'ipv4'))?.what ?? null;
  if (!isIPv6(address) || address.includes('%')) return 'not a plain IP address';
  const special = lists6.find((l) => l.list.check(address, 'ipv6'))?.what;
  return special ?? (global6.check(address, 'ipv6') ? null : 'not a public IPv6 address');
}
