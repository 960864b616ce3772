import type { T } from 'lodash';
import { U } from 'left-pad';
let u: U | T;
'types only'
