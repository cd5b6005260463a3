import { createHmac } from 'node:crypto';
import { crc32 } from 'node:zlib';

/** A STUN binding request as a browser sends it to a transport over TCP (RFC 8489, framed by RFC 4571). */

const attribute = (type: number, value: Buffer): Buffer => {
  const padded = Buffer.alloc(4 + Math.ceil(value.length / 4) * 4);
  padded.writeUInt16BE(type, 0);
  padded.writeUInt16BE(value.length, 2);
  value.copy(padded, 4);
  return padded;
};
const uint32 = (value: number): Buffer => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value >>> 0);
  return bytes;
};

export function bindingRequest(to: { usernameFragment: string; password: string }): Buffer {
  let message = Buffer.concat([
    Buffer.from('000100002112a442', 'hex'),
    Buffer.alloc(12, 7), // the transaction
    attribute(0x0006, Buffer.from(`${to.usernameFragment}:test`)),
    attribute(0x0024, uint32(1)), // priority
    attribute(0x802a, Buffer.alloc(8, 1)), // controlling
    attribute(0x0025, Buffer.alloc(0)), // use this candidate
  ]);
  const seal = (type: number, size: number, sign: (bytes: Buffer) => Buffer): void => {
    message.writeUInt16BE(message.length - 20 + 4 + size, 2);
    message = Buffer.concat([message, attribute(type, sign(message))]);
  };
  seal(0x0008, 20, (bytes) => createHmac('sha1', to.password).update(bytes).digest());
  seal(0x8028, 4, (bytes) => uint32(crc32(bytes) ^ 0x5354554e));
  const length = Buffer.alloc(2);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}
