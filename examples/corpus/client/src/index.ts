// What the app imports.
export { HttpClient, ServiceError } from "./http";
export { cancelReservation, countdown, extendHold, reserveBike } from "./reservations";
export { listStations, nearestWithBike } from "./stations";
export * from "./types";
