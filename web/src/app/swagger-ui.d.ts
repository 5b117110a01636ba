declare module 'swagger-ui-dist/swagger-ui-es-bundle.js' {
  /** Draws the page; the options are documented at https://swagger.io/docs/open-source-tools/swagger-ui/usage/configuration/ */
  export default function SwaggerUI(options: Record<string, unknown>): void
}
