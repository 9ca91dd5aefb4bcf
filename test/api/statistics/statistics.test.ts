import { openStandIns } from '../../support/stand-in-stores.ts';
import { describeStatistics } from './describe-statistics.ts';

describeStatistics('over the embedded stores', undefined);
describeStatistics('over servers', openStandIns);
