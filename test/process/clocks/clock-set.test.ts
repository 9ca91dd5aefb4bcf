import { expect } from 'chai';
import { faultsOfFires } from '../../support/expected-fires.ts';
import { buildService, endsItsProcesses } from '../../support/service-process.ts';
import {
  makeTemporaryDirectory,
  type TemporaryDirectory,
} from '../../support/temporary-directory.ts';
import { moverOfDates, moverOfSystemTime, type ClockMover } from './clock-mover.ts';
import { setTheClock, type AfterSetting } from './clock-set.ts';
import { faultsOfCauses, faultsOfRuns, faultsOfStreams } from '../log-checks.ts';
import { leaveOut, longVersions } from '../../support/left-out.ts';

const long = longVersions();
/** Skipped without the library. */
const LIBFAKETIME =
  'the time of the whole system: libfaketime is missing (Debian: apt-get install libfaketime)';

describeSetting('in its dates', moverOfDates);
// With the whole system's time, if Debian's libfaketime is installed.
if (long) describeSetting('by libfaketime', moverOfSystemTime);

function describeSetting(how: string, move: (at: string) => ClockMover | undefined): void {
  describe(`the service, when its clock is set back and forward by an hour, ${how}`, function () {
    this.timeout(480_000);
    let directory: TemporaryDirectory;
    let found: AfterSetting;

    before(async function () {
      buildService();
      directory = await makeTemporaryDirectory();
      const mover = move(directory.path);
      if (mover === undefined) leaveOut(this, LIBFAKETIME);
      found = await setTheClock(directory.path, mover);
    });
    endsItsProcesses();
    after(() => directory.remove());

    it('fires nothing twice, and decides missed fires by the misfire policy', () => {
      const { ledger, tasks } = found;
      expect([...faultsOfStreams(ledger), ...faultsOfCauses(ledger)]).to.deep.equal([]);
      expect(faultsOfRuns(ledger, tasks)).to.deep.equal([]);
      for (const { id, seconds, createdAt, name } of tasks) {
        if (seconds === undefined) throw new Error(`${name} has no seconds at which it is due`);
        expect(faultsOfFires({ ...seconds, createdAt }, ledger.fires(id)), name).to.deep.equal([]);
      }
    });

    it('fires nothing early while its clock is behind, but fires a task created then', () => {
      const { ledger, tasks, atBack, atRight } = found;
      const meanwhile = ledger
        .all('Fired')
        .filter(({ position }) => position > atBack && position <= atRight);
      const made = tasks.at(-1);
      const early = meanwhile.filter(({ metadata, data }) => data.nominal > metadata.occurredAt);
      expect(early).to.deep.equal([]);
      expect(meanwhile.some(({ stream }) => stream === `fires-${made?.id}`)).to.equal(true);
    });

    it('records the skipped hour once for each task', () => {
      const { ledger, tasks, atForward } = found;
      for (const { id, name } of tasks) {
        const records = ledger
          .all('FiresSkipped')
          .filter(
            ({ stream, position, data }) =>
              stream === `fires-${id}` && position > atForward && data.count > 1000,
          );
        expect(records, name).to.have.lengthOf(1);
      }
    });

    it('does not loop', () => {
      for (const share of found.busy) expect(share).to.be.below(0.8);
    });

    it('works at once if it starts with a clock an hour behind the previous one', () => {
      expect(found.afterRestart).to.equal('succeeded');
    });
  });
}
