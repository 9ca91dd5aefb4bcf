import { expect } from 'chai';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import type { AddressInfo } from 'node:net';
import tls from 'node:tls';
import { createHttpServer } from '../../../api/serving/http-server.ts';
import { certificate } from '../../support/certificates.ts';

describe('HTTPS', () => {
  const [version, ciphers] = [tls.DEFAULT_MIN_VERSION, tls.DEFAULT_CIPHERS];

  // As Node's options --tls-min-v1.0 and --tls-cipher-list would.
  beforeEach(() => {
    tls.DEFAULT_MIN_VERSION = 'TLSv1';
    tls.DEFAULT_CIPHERS = 'DEFAULT@SECLEVEL=0';
  });

  afterEach(() => {
    tls.DEFAULT_MIN_VERSION = version;
    tls.DEFAULT_CIPHERS = ciphers;
  });

  /**
   * The version negotiated with a client that supports none later than the given one; null:
   * refused.
   */
  async function negotiated(port: number, maxVersion: tls.SecureVersion): Promise<string | null> {
    const socket = tls.connect({ port, host: '127.0.0.1', rejectUnauthorized: false, maxVersion });
    try {
      await once(socket, 'secureConnect');
      return socket.getProtocol();
    } catch {
      return null;
    } finally {
      socket.destroy();
    }
  }

  it('has version 1.2 or later, even if options of Node allow earlier ones', async () => {
    const { cert, key } = certificate('one');
    const pair = { cert: readFileSync(cert, 'utf8'), key: readFileSync(key, 'utf8') };
    const server = createHttpServer(() => {}, { tls: pair });
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    try {
      const { port } = server.address() as AddressInfo;
      expect(await negotiated(port, 'TLSv1.3')).to.equal('TLSv1.3');
      expect(await negotiated(port, 'TLSv1.2')).to.equal('TLSv1.2');
      expect(await negotiated(port, 'TLSv1.1')).to.equal(null);
    } finally {
      server.close();
    }
  });
});
