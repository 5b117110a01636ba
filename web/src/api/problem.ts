interface FieldError {
  field: string
  message: string
}

/** A problem document (RFC 9457) of the server, or one of our own if the server does not answer. */
export class ApiProblem extends Error {
  readonly code: string
  readonly title: string
  readonly detail: string
  readonly status: number
  readonly requestId: string | undefined
  readonly errors: FieldError[]
  readonly errorsOmitted: number

  constructor(document: Record<string, unknown>, status: number) {
    const title = text(document.title) ?? `The server answered ${status}`
    super(title)
    this.name = 'ApiProblem'
    this.title = title
    this.code = text(document.code) ?? 'internal'
    this.detail = text(document.detail) ?? ''
    this.requestId = text(document.request_id)
    this.status = status
    this.errors = Array.isArray(document.errors) ? document.errors.filter(isFieldError) : []
    this.errorsOmitted = typeof document.errors_omitted === 'number' ? document.errors_omitted : 0
  }
}

/** Any failure as a problem: the server's own, or one for a server that did not answer. */
export function toProblem(error: unknown): ApiProblem {
  if (error instanceof ApiProblem) return error
  // Browsers give no reason: "Failed to fetch", "Load failed", "NetworkError when attempting to fetch resource".
  const detail =
    error instanceof TypeError ? 'The server did not answer. The server or the network may be down.' : String(error)
  return new ApiProblem({ code: 'server.unreachable', title: 'The server cannot be reached', detail }, 0)
}

/** True if the server did not answer, so that the same request may succeed later. */
export function isAway(error: unknown): boolean {
  return error !== null && toProblem(error).status === 0
}

/** The body of a failed answer as a problem; a proxy in between may have sent anything. */
export function problemOf(body: unknown, status: number): ApiProblem {
  return new ApiProblem(isRecord(body) ? body : {}, status)
}

function text(value: unknown): string | undefined {
  return typeof value === 'string' ? value : undefined
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null
}

function isFieldError(value: unknown): value is FieldError {
  return isRecord(value) && typeof value.field === 'string' && typeof value.message === 'string'
}
