import './participation.css'

import { useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'

import { meQuery, onlyReads } from '@/api/account'
import { participationQuery } from '@/api/participation-matrix'
import { toProblem } from '@/api/problem'
import { participantsQuery } from '@/api/queries'
import { type Experiment, isFinished } from '@/api/types'
import { InvitationsSection } from '@/features/experiment/invitations/invitations-section'
import type { ChangeExperimentUrl, ExperimentUrlState } from '@/features/experiment/url-state'
import { ProblemNotice } from '@/lib/ui/notice'

import { HeatMapSection } from './heat-map-section'
import { ParticipantsSection } from './participants-section'
import { firstRound, matrixOf, windowOf } from './participation-matrix'
import { RejectionsSection } from './rejections-section'
import { TimelineDrawer } from './timeline-drawer'

interface Props {
  experiment: Experiment
  view: ExperimentUrlState
  onView: ChangeExperimentUrl
}

const NOBODY = { rounds: [], displayNames: {} }

/** Participation over all rounds, each participant, and the refused uploads. */
export function ParticipantsTab({ experiment, view, onView }: Props) {
  const { id, state } = experiment
  const live = !isFinished(state)
  const step = windowOf(experiment.participants)
  // Where it begins stays while rounds are added at the end.
  const [after, setAfter] = useState(() => firstRound(experiment.round, step))
  const query = useQuery(participationQuery(id, after, live))
  const joined = useQuery(participantsQuery(id, live))
  const matrix = useMemo(() => matrixOf(query.data ?? NOBODY), [query.data])
  const open = (participant: string | undefined, round: number | undefined) => {
    onView({ participant, round })
  }
  const invites = onlyReads(useQuery(meQuery).data) === false
  const error = query.error ?? joined.error
  return (
    <>
      {error && <ProblemNotice problem={toProblem(error)} />}
      <HeatMapSection
        id={id}
        matrix={matrix}
        pending={query.isPending}
        view={view}
        onView={onView}
        onOpen={open}
        earlier={
          after > 0
            ? () => {
                setAfter(Math.max(0, after - step))
              }
            : undefined
        }
      />
      <ParticipantsSection
        experiment={experiment}
        matrix={matrix}
        participants={joined.data ?? []}
        view={view}
        onView={onView}
        onOpen={(name) => {
          open(name, undefined)
        }}
      />
      {invites && experiment.spec.participants.edge > 0 && <InvitationsSection experiment={experiment} />}
      <RejectionsSection experiment={experiment} />
      {view.participant !== undefined && (
        <TimelineDrawer
          key={view.participant}
          id={id}
          participant={view.participant}
          round={view.round}
          onClose={() => {
            open(undefined, undefined)
          }}
        />
      )}
    </>
  )
}
