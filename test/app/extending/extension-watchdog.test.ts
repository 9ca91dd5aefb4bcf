import { join } from 'node:path';
import { expect } from 'chai';
import { ExtensionWatchdog } from '../../../app/extending/extension-watchdog.ts';
import { silent } from '../../../observability/telemetry.ts';
import { useTemporaryDirectory } from '../../support/temporary-directory.ts';

describe('the watchdog of extensions', () => {
  const directory = useTemporaryDirectory();

  it("starts even if an extension's folder has been removed since it was found", async () => {
    const watchdog = new ExtensionWatchdog({
      extensions: () => [
        { id: 'gone', folder: join(directory(), 'gone') },
        { id: 'there', folder: directory() },
      ],
      blocked: () => {},
      log: silent.log,
      logLevel: 'silent',
    });
    try {
      expect(() => watchdog.begin()).not.to.throw();
    } finally {
      await watchdog.close();
    }
  });
});
