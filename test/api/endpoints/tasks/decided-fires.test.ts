import { openStandIns } from '../../../support/stand-in-stores.ts';
import { describeDecidedFires } from './describe-decided-fires.ts';

describeDecidedFires('over the embedded stores', undefined);
describeDecidedFires('over servers', openStandIns);
