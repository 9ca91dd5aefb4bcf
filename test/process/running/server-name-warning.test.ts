import { expect } from 'chai';
import { certificate } from '../../support/certificates.ts';
import { EventStoreDbServer } from '../../support/eventstoredb-server/server.ts';
import { ServiceProcess, buildService, endsItsProcesses } from '../../support/service-process.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('a service that reaches EventStoreDB by TLS at an IP address', function () {
  this.timeout(90_000);
  endsItsProcesses();
  const directory = useTemporaryDirectory();
  let server: EventStoreDbServer;
  before(() => buildService());
  beforeEach(async () => {
    server = await EventStoreDbServer.start({ certificate: certificate('one') });
  });
  afterEach(() => server.stop());

  it('does not print a warning that the address is not a server name', async () => {
    const { cert } = certificate('one');
    const service = await ServiceProcess.start({
      SVC_DATA_DIR: directory(),
      SVC_EVENT_STORE_URL: `esdb://ops:secret@127.0.0.1:${server.port}?tlsCAFile=${cert}`,
      JWT_SECRET_KEY: 'JzqBWcj8nlGdmgS9MFIm0yYi2Zt4vUxV',
    });
    expect(await service.terminate()).to.deep.equal({ code: 0, signal: null });
    expect(server.appends).not.to.be.empty;
    expect(service.output).not.to.match(/DEP0123|ServerName/);
  });
});
