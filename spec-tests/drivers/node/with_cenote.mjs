// Put before a program, it gives the driver Cenote's pool: node --import ./with_cenote.mjs PROGRAM
import { install } from 'cenote/mongodb';
import * as mongodb from 'mongodb';

install(mongodb);
