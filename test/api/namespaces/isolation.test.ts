import { openStandIns } from '../../support/stand-in-stores.ts';
import { describeIsolation } from './describe-isolation.ts';

describeIsolation('over the embedded stores', undefined);
describeIsolation('over servers', openStandIns);
