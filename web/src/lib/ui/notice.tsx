import type { ReactNode } from 'react'

interface Props {
  title: string
  testId: string
  children: ReactNode
}

/** A message that is not an error, often with a next step. */
export function Notice({ title, testId, children }: Props) {
  return (
    <section className="notice" role="status" data-testid={testId}>
      <h2>{title}</h2>
      {children}
    </section>
  )
}

interface FieldError {
  field: string
  message: string
}

/** The parts of a problem document (RFC 9457) that a reader can use. */
export interface Problem {
  code: string
  title: string
  detail: string
  requestId?: string | undefined
  errors: FieldError[]
  errorsOmitted?: number | undefined
}

export function ProblemNotice({ problem, children }: { problem: Problem; children?: ReactNode }) {
  return (
    <section className="problem-notice" role="alert">
      <h2>{problem.title}</h2>
      {problem.detail && <p>{problem.detail}</p>}
      {problem.errors.length > 0 && (
        <ul>
          {problem.errors.map((error) => (
            <li key={`${error.field} ${error.message}`}>
              <code>{error.field}</code> {error.message}
            </li>
          ))}
          {!!problem.errorsOmitted && <li>and {problem.errorsOmitted} more</li>}
        </ul>
      )}
      <NextStep problem={problem} />
      {children}
    </section>
  )
}

/** The next step for a problem, by its code. The problem's own detail describes the problem. */
const NEXT_STEPS: Record<string, string> = {
  'auth.forbidden': 'Ask an administrator of the server for the role that this needs.',
  'auth.missing': 'Sign in again.',
  'auth.invalid': 'Sign in again. A sign-in link works once: “ferret dashboard” prints a new one.',
  'dataset.invalid': 'Fix the file at the place named above and submit the experiment again.',
  'experiment.changed': 'The page shows the experiment as it is now. Repeat your change if you still want it.',
  'experiment.conflict': 'Reload the page: the experiment may have changed in the meantime.',
  'experiment.not_found': 'Check the address, or look for the experiment in the list.',
  'extension.refused': 'Clone the experiment with more rounds instead.',
  'ledger.broken': 'Run “ferret experiment verify ID” on the server to see which round differs.',
  'memory.exhausted': 'Lower algorithm.local.batch_size, or train on a larger device, and submit again.',
  'model.invalid': 'Point model.source at a causal language model in Hugging Face layout and submit again.',
  'partition.invalid': 'Lower participants.simulated or choose another partition, then submit again.',
  'oidc.clock_skew': 'Ask an administrator of the server to set the clocks.',
  'oidc.no_role': 'Ask an administrator of the server which group of the provider you have to be in.',
  'oidc.not_configured': 'Sign in with name and password.',
  'oidc.refused': 'Sign in again, or ask the people who run the provider.',
  'oidc.state_mismatch': 'Sign in again in this window, within ten minutes.',
  'oidc.token_invalid': 'Sign in again. If the error remains, tell an administrator of the server.',
  'oidc.unexpected': 'Tell an administrator of the server: FERRET_OIDC_ISSUER may be wrong.',
  'oidc.unreachable': 'Try again in a minute. An account with a password can sign in meanwhile.',
  'password.invalid': 'Enter your current password again. If you forgot it, an administrator can set a new one.',
  'page.broken':
    'Reload the page: the server may run another release. If the error remains, report it with the text above.',
  'participant.conflict': 'Reload the page: somebody else may have decided in the meantime.',
  'artifact.not_found': 'Choose another round: the files of this one are gone.',
  'broker.missing': 'Tell an administrator of the server: the broker does not answer.',
  'playground.busy': 'Ask again in a minute.',
  'playground.interrupted': 'Ask again.',
  'playground.no_example': 'Write your own question.',
  'playground.unavailable': 'Ask an administrator of the server to start “ferret worker playground”.',
  'request.too_many': 'Wait a minute, then try again.',
  'task.too_long': 'Ask for fewer tokens.',
  'worker.stopping': 'Ask again in a moment: the worker is being restarted.',
  'quorum.missed':
    'If updates were refused, fix the cause named above. If participants were missing or slow, lower round.quorum or set a longer round.deadline_seconds. Then clone the experiment.',
  'round.diverged':
    'Lower algorithm.local.learning_rate or server.learning_rate, or turn on gradient clipping. Then clone the experiment.',
  'server.not_ready': 'Run “ferret doctor” on the server: it shows what is missing.',
  'server.unreachable': 'Check that “ferret serve” is still running, then try again.',
  'spec.invalid': 'Correct the fields named above and submit the experiment again.',
  'storage.corrupt': 'Run “ferret experiment verify ID” on the server to find the damaged file.',
  'storage.full': 'Free some room on the server’s disk, then submit the experiment again.',
  'storage.missing': 'Restore the file named above from a backup of the storage.',
  'storage.refused': 'Run “ferret doctor” on the server: it shows which permission the bucket lacks.',
  'storage.taken': 'Give the service a separate folder or prefix: FERRET_STORAGE_URL.',
  'storage.unreachable': 'Run “ferret doctor” on the server; work continues once the bucket answers.',
  'task.given_up': 'Fix the cause named above, then clone the experiment to run it again.',
  'user.disabled': 'Ask an administrator of the server to enable the account.',
  'training.non_finite': 'Lower the local learning rate or turn on gradient clipping, then submit again.',
}

function nextStep({ code, requestId }: NextStepProps['problem']): string | undefined {
  if (code === 'internal' && requestId) return 'The server’s log has details under this request’s id.'
  return NEXT_STEPS[code]
}

interface NextStepProps {
  problem: { code: string; requestId?: string | undefined }
}

/** The next step for a problem, if one is known, and the request id that an administrator needs. */
export function NextStep({ problem }: NextStepProps) {
  const step = nextStep(problem)
  return (
    <>
      {step && (
        <p>
          <strong>What to do next:</strong> {step}
        </p>
      )}
      <p className="muted small">
        <code>{problem.code}</code>
        {problem.requestId && (
          <>
            {' · request '}
            <code>{problem.requestId}</code>
          </>
        )}
      </p>
    </>
  )
}
