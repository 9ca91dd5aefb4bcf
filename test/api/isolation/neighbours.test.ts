import { expect } from 'chai';
import { createBuiltInTools } from '../../../scheduler/tools/built-in.ts';
import { noActions } from '../../support/api-settings.ts';
import { longVersions } from '../../support/left-out.ts';
import { Servers } from '../../process/servers.ts';
import { Neighbourhood } from './neighbourhood.ts';
import { itFindsNothingByIds } from './finding-by-ids.ts';
import { itFindsNothingInLists } from './finding-in-lists.ts';
import { itFindsNothingInStreams } from './finding-in-streams.ts';
import { itReachesNothingBySteps } from './reaching-by-steps.ts';
import { gaps, plans } from './planned-attempts.ts';
import type { Pair, Resident } from './resident.ts';
import { stepAttempts, toolGaps } from './tool-attempts.ts';

describe('the tables of what a neighbour tries', () => {
  it('cover every parameter and every body of every endpoint', () => {
    expect(gaps()).to.deep.equal([]);
  });

  it('cover every argument of every tool for language models', () => {
    expect(toolGaps()).to.deep.equal([]);
  });

  it('cover every tool of pipelines', async () => {
    const { registry, close } = createBuiltInTools({ actions: noActions, allowPrivate: false });
    await close();
    const names = registry.builtIn.map(({ name }) => name);
    expect(Object.keys(stepAttempts).sort()).to.deep.equal(names.sort());
  });
});

for (const stores of ['the embedded stores', 'EventStoreDB and MongoDB'] as const) {
  describe(`a neighbour in another namespace, over ${stores},`, () => {
    let servers: Servers | undefined;
    let place: Neighbourhood | undefined;
    let here: Resident;
    let there: Resident;
    const ofPlace = (): Neighbourhood => {
      if (place === undefined) throw new Error('the service runs only during the tests');
      return place;
    };

    before(async function () {
      this.timeout(180_000);
      servers = stores === 'the embedded stores' ? undefined : await Servers.start();
      place = await Neighbourhood.start(servers?.settings);
      await place.admin.post('/namespaces', { name: 'other' });
      here = await place.furnish(await place.settle('default', 'First of default'), 'default');
      there = await place.furnish(await place.settle('other', 'First of other'), 'other');
    });
    after(async () => {
      await place?.stop();
      await servers?.stop();
    });

    it('tries every endpoint of the service', async () => {
      const { json } = await ofPlace().admin.get('/openapi.json');
      const described = Object.entries(json['paths'] as Record<string, object>).flatMap(
        ([path, methods]) =>
          Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
      );
      const known = new Set(plans.map(({ operation }) => operation.replace(/(?<=.)\/$/, '')));
      expect(described.filter((each) => !known.has(each))).to.deep.equal([]);
    });

    const directions = [
      // Its agent may have every scope, including `ops`.
      ['of another namespace', (): Pair => ({ place: ofPlace(), me: here, other: there })],
      ['of default', (): Pair => ({ place: ofPlace(), me: there, other: here })],
    ] as const;
    // No store treats a namespace differently because of its name. Therefore one direction is
    // enough to show that each query names a namespace.
    const both = stores === 'the embedded stores' || longVersions();
    for (const [whose, pair] of both ? directions : directions.slice(0, 1)) {
      describe(`who asks about things ${whose}`, () => {
        itFindsNothingByIds(pair);
        itFindsNothingInLists(pair);
        itFindsNothingInStreams(pair);
        itReachesNothingBySteps(pair);
      });
    }
  });
}
