import './participation.css'

import { keepPreviousData, useQuery } from '@tanstack/react-query'
import { useMemo, useState } from 'react'

import { meQuery, onlyReads } from '@/api/account'
import { participationQuery } from '@/api/participation-matrix'
import { toProblem } from '@/api/problem'
import { participantsQuery, rejectionsQuery } from '@/api/queries'
import { type Experiment, isFinished, type Rejection } from '@/api/types'
import type { ChangeExperimentUrl, ExperimentUrlState } from '@/features/experiment/url-state'
import { formatCount, formatTime } from '@/lib/format'
import { ProblemNotice } from '@/lib/ui/notice'
import { SiteName } from '@/lib/ui/site-name'
import { TableHead } from '@/lib/ui/table-head'

import { HeatMapSection } from './heat-map-section'
import { InvitationsSection } from './invitations-section'
import { ParticipantsSection } from './participants-section'
import { firstRound, matrixOf, windowOf } from './participation-matrix'
import { TimelineDrawer } from './timeline-drawer'

interface Props {
  experiment: Experiment
  view: ExperimentUrlState
  onView: ChangeExperimentUrl
}

const NOBODY = { rounds: [], displayNames: {} }

/** Participation over all rounds, each participant, and the refused uploads. */
export default function Participation({ experiment, view, onView }: Props) {
  const { id, state } = experiment
  const live = !isFinished(state)
  const step = windowOf(experiment.participants)
  // Where it begins stays while rounds are added at the end.
  const [after, setAfter] = useState(() => firstRound(experiment.round, step))
  const query = useQuery({ ...participationQuery(id, after, live), placeholderData: keepPreviousData })
  const joined = useQuery(participantsQuery(id, live))
  const matrix = useMemo(() => matrixOf(query.data ?? NOBODY), [query.data])
  const open = (participant: string | undefined, round = view.round) => {
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
        loaded={query.isSuccess}
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
        loaded={query.isSuccess && joined.isSuccess}
        view={view}
        onView={onView}
        onOpen={(name) => {
          open(name)
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
            open(undefined)
          }}
        />
      )}
    </>
  )
}

const COLUMNS = ['Round', 'Participant', 'Refused', 'Reason', 'Latest detail', 'Latest']

/** Uploads that were refused, if there were any: none of them moved the model. */
function RejectionsSection({ experiment: { id, state } }: { experiment: Experiment }) {
  const { data: rejections = [], error } = useQuery(rejectionsQuery(id, !isFinished(state)))
  if (error) return <ProblemNotice problem={toProblem(error)} />
  if (rejections.length === 0) return null
  const total = rejections.reduce((sum, { count }) => sum + count, 0)
  return (
    <section aria-labelledby="rejections" data-testid="rejections">
      <header className="section-header">
        <h2 id="rejections">Refused uploads</h2>
        <span className="muted small">{formatCount(total)} in all; none of them changed the model</span>
      </header>
      <div className="table-scroll tall" tabIndex={0} role="group" aria-label="Refused uploads">
        <table>
          <TableHead columns={COLUMNS} numbers={['Round', 'Refused']} />
          <tbody>
            {rejections.toReversed().map((rejection) => (
              <RejectionRow key={`${rejection.round} ${rejection.participant} ${rejection.code}`} {...rejection} />
            ))}
          </tbody>
        </table>
      </div>
    </section>
  )
}

function RejectionRow({ round, participant, display_name: name, count, code, detail, updated_at: last }: Rejection) {
  return (
    <tr>
      <td className="number">{round}</td>
      <th scope="row">
        <SiteName name={name} id={participant} />
      </th>
      <td className="number">{formatCount(count)}</td>
      <td>
        <code>{code}</code>
      </td>
      <td className="cell-detail">{detail}</td>
      <td className="nowrap">
        <time dateTime={last}>{formatTime(last)}</time>
      </td>
    </tr>
  )
}
