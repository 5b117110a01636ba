import { infiniteQueryOptions, queryOptions } from '@tanstack/react-query'

import { politeInterval } from '@/lib/back-off'

import { type Answer, answer, client } from './client'
import { isAway } from './problem'
import {
  type CatalogKind,
  type Event,
  type ExperimentState,
  isFinished,
  type Participant,
  type Rejection,
  type Round,
} from './types'
